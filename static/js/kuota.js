// The script of all pages: it updates live pages, previews forms while the user
// types, and shows times in the time zone of the browser. Every page works
// without it. HTML comes from this server only, passes the one Trusted Types
// policy, and is merged into the page by Idiomorph.

const { Idiomorph } = globalThis;
const policy = globalThis.trustedTypes?.createPolicy("kuota", { createHTML: (html) => html })
  ?? { createHTML: (html) => html };

document.documentElement.classList.add("js");
document.querySelector("[data-focus-on-load]")?.focus();
localTimes(document);
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
const atEnd = new WeakMap(); // logs whose end is shown, and how far they are scrolled
for (const element of document.querySelectorAll("[data-end]")) keepEnd(element);
// Off only with this script: without it, the browser must restore what was typed.
for (const form of document.querySelectorAll("form[method=post]")) form.autocomplete = "off";
for (const form of document.querySelectorAll("form[data-in-place]")) keepInHistory(form, form.getAttribute("action"));
for (const form of document.querySelectorAll("form[data-typed]:not([data-preview])")) restoreText(form);
for (const form of document.querySelectorAll("form[data-preview]")) livePreview(form);
if (document.body.dataset.stream) liveStream(document.body.dataset.stream);

// --- Merging what the server rendered -------------------------------------

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  localTimes(template.content);
  return template.content;
}

// While a mouse button or a finger is down, nothing is merged: what the user presses
// stays where it is until the click. A scrollbar has no pointerup, hence the limit.
let released = Promise.resolve();
document.addEventListener("pointerdown", () => {
  const listening = new AbortController();
  released = new Promise((done) => {
    for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => setTimeout(done), { capture: true, signal: listening.signal }); // after the click
    setTimeout(done, 3_000);
  });
  released.then(() => listening.abort());
}, { capture: true });

// keep(control) reports whether the value of a control is newer than the HTML.
function morph(target, fresh, keep = () => false) {
  Idiomorph.morph(target, fresh, {
    callbacks: {
      // Unchanged rows and drawn charts stay as they are.
      beforeNodeMorphed: (old, fresh) => fresh.dataset?.keep === undefined && !old.classList?.contains("chart-plot"),
      beforeAttributeUpdated(name, element) {
        if (name === "open" || name === "autocomplete") return false; // set by the browser or this script
        if (["value", "checked", "selected"].includes(name) && keep(element.closest("select") ?? element)) return false;
        return true;
      },
    },
  });
}

// A log: new lines are appended, and the first ones removed. Its end is shown until
// the reader scrolls away from it.
const maxLines = 2_000;

function append(target, fresh) {
  target.append(...fresh.childNodes);
  for (let extra = target.childElementCount - maxLines; extra > 0; extra--) target.firstElementChild.remove();
}

function keepEnd(element) {
  follow(element, true);
  element.addEventListener("scroll", () => {
    if (element.scrollHeight - element.scrollTop - element.clientHeight < 8) follow(element, true);
    else if (element.scrollTop < atEnd.get(element)) follow(element, false); // the reader scrolled up: lines that are added leave it as it is
  });
  new ResizeObserver(() => showEnd(element)).observe(element); // lines wrap at another width
}

// The browser keeps the lines that a reader sees in their place when others above are
// removed; at the end of a log, this would be a scroll away from it.
function follow(element, whether) {
  element.style.overflowAnchor = whether ? "none" : "";
  if (whether) atEnd.set(element, element.scrollTop); else atEnd.delete(element);
}

function showEnd(element) {
  if (!atEnd.has(element)) return;
  element.scrollTop = element.scrollHeight;
  follow(element, true);
}

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.title = date.toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" }) + " UTC";
    if (!("local" in time.dataset)) continue;
    const today = date.toDateString() === new Date().toDateString();
    time.textContent = date.toLocaleString("en-GB", {
      ...(!today ? { day: "numeric", month: "short" } : time.dataset.local === "minute" ? {} : { second: "2-digit" }),
      hour: "2-digit",
      minute: "2-digit",
    });
  }
}

// --- Live pages ------------------------------------------------------------

// The server sends events named "fragment": elements whose ids are on the page.
// It sends at least the age of the data every second. After 3 s without an event the
// page says that the connection is lost, and after 6 s it opens another one: a
// replica that hangs keeps its connections open. EventSource does not reconnect
// after HTTP errors, so this function does: three times within 3 s, by when another
// replica answers.
function liveStream(url) {
  const quiet = 3_000, silence = 6_000, patience = 2_000, firstDelay = 300, lastDelay = 10_000, recheckDelay = 3_000;
  const { root, user } = document.body.dataset; // the console's address, which ends with a slash
  const as = new URLSearchParams({ as: user });
  let source, delay = firstDelay, reconnect, watchdog, lossTimer, recheck;

  function open() {
    close();
    lossTimer ??= setTimeout(showLoss, patience);
    source = new EventSource(`${url}${url.includes("?") ? "&" : "?"}${as}`);
    source.addEventListener("error", () => { retry(); stillSignedIn(); });
    source.addEventListener("signed-out", showSignedOut);
    source.addEventListener("fragment", async (event) => {
      listen();
      await released;
      if (event.target.readyState === EventSource.CLOSED) return; // another one was opened
      for (const fresh of [...parse(event.data).children]) {
        const target = document.getElementById(fresh.id);
        if (!target) continue;
        if ("append" in fresh.dataset) append(target, fresh); else morph(target, fresh);
        showEnd(target);
        if (target.querySelector("[data-keep]")) return open(); // the page lacks a row that the server expects: load all rows again
      }
      document.dispatchEvent(new Event("kuota:merged"));
    });
    watchdog = setTimeout(retry, silence);
  }

  function listen() {
    delay = firstDelay;
    clearTimeout(lossTimer);
    lossTimer = setTimeout(showLoss, quiet);
    clearTimeout(watchdog);
    watchdog = setTimeout(retry, silence);
  }

  function retry() {
    close();
    lossTimer ??= setTimeout(showLoss, patience);
    reconnect = setTimeout(open, delay * (0.75 + Math.random() / 2));
    delay = Math.min(delay * 2, lastDelay);
  }

  function close() {
    source?.close();
    clearTimeout(reconnect);
    clearTimeout(watchdog);
    clearTimeout(recheck);
  }

  // The next cluster-status from the server replaces this.
  function showLoss() {
    setStatus("connection lost, retrying");
  }

  // EventSource does not say why a connection was refused.
  async function stillSignedIn() {
    const answer = await fetch(`${root}auth/session?${as}`).catch(() => undefined);
    if (answer?.status === 401) showSignedOut();
    if (answer?.status === 409) showOtherUser();
    return answer?.ok;
  }

  // The values of a form stay on the page while the user signs in in another tab.
  // The stream then reconnects by itself.
  function showSignedOut() {
    const typing = document.querySelector("form[data-preview]");
    // The console adds its base path.
    const back = `/${typing ? "auth/signed-in" : location.pathname.slice(root.length) + location.search}`;
    stop("signed out", typing ? "Sign in in another tab" : "Sign in", `${root}auth/login?${new URLSearchParams({ return: back })}`, typing);
    recheck = setTimeout(reconnectOnceSignedIn, recheckDelay);
  }

  async function reconnectOnceSignedIn() {
    const signedIn = await stillSignedIn();
    if (signedIn) open();
    if (signedIn === undefined) recheck = setTimeout(reconnectOnceSignedIn, recheckDelay);
  }

  function showOtherUser() {
    stop("another user is signed in now", "Reload the page", location.pathname + location.search, false);
  }

  function stop(words, text, href, elsewhere) {
    close();
    clearTimeout(lossTimer);
    lossTimer = undefined;
    const link = document.createElement("a");
    link.href = href;
    link.textContent = text;
    if (elsewhere) link.target = "_blank";
    setStatus(words)?.after(link);
  }

  function setStatus(text) {
    const status = document.getElementById("cluster-status");
    if (!status) return undefined;
    status.dataset.state = "lost";
    status.querySelector(".age, a")?.remove();
    const line = status.querySelector("[role=status]");
    line.textContent = text;
    return line;
  }

  function follow() {
    if (!document.hidden) return open();
    close();
    clearTimeout(lossTimer);
    lossTimer = undefined;
  }
  document.addEventListener("visibilitychange", follow);
  follow();
}

// --- Typed values in the browser's history ---------------------------------

// The values of a form are stored in the history entry of the page, for Back,
// Forward and reload. The response to a POST has no address of its own: its entry
// gets the address of the form, so that the browser does not offer to send the
// values again.
function keepInHistory(form, address) {
  history.replaceState({ ...history.state, typed: valuesOf(form) }, "", address);
}

// Restores the text of a form that has no preview.
function restoreText(form) {
  for (const [name, value] of new URLSearchParams(typedInHistory())) {
    const control = form.elements[name];
    if (control?.matches?.("textarea, input[type=text]") && control.value === "") control.value = value;
  }
  form.addEventListener("change", () => keepInHistory(form));
}

function typedInHistory() {
  return history.state?.typed;
}

function valuesOf(form) {
  const values = [...new FormData(form)].filter(([, value]) => typeof value === "string"); // no files
  return new URLSearchParams(values).toString();
}

// --- Forms that the server fills in ----------------------------------------

// At most one request is pending. When it returns, changes since are sent. A
// control that changed since the request keeps its value.
function livePreview(form) {
  let busy = false, sent = null, retryTimer, request, restoring, verifyTimer, verifying = false;
  const actions = []; // pressed buttons that are not sent yet
  const controls = () => [...form.elements].filter((e) => e.matches("input:not([type=hidden]), select, textarea"));
  const stateOf = (control) => (control.matches("[type=radio], [type=checkbox]") ? control.checked : control.value);
  const formState = () => valuesOf(form);
  const guarded = "typed" in form.dataset;
  // Typed before this script ran, or restored by the browser: the server has not seen it.
  const asWritten = (control) => control.options ? (control.querySelector("option[selected]") ?? control.options[0])?.selected !== false
    : stateOf(control) === (typeof stateOf(control) === "boolean" ? control.defaultChecked : control.defaultValue);
  const early = !controls().every(asWritten);
  const opened = early || "edited" in form.dataset ? null : formState();
  const edited = () => opened === null || formState() !== opened;

  // Of an unchanged form, there is nothing to save.
  function offer(typed) {
    for (const button of form.querySelectorAll("[data-unchanged]")) button.disabled = !typed;
  }

  async function send() {
    clearTimeout(retryTimer);
    if (busy) return;
    busy = true;
    try {
      while (!form.dataset.saving && (restoring || actions.length > 0 || formState() !== sent)) {
        const action = restoring ? undefined : actions[0];
        await exchange(action, restoring);
        restoring = undefined;
        if (action) actions.shift(); // after success: a failed action is retried
      }
      say("");
    } catch (error) {
      if (error.name !== "AbortError") {
        sent = null;
        say(`Not filled in: ${error instanceof TypeError ? "the server cannot be reached" : error.message}. What you typed is kept; trying again.`);
        retryTimer = setTimeout(send, 2_000);
      }
    } finally {
      busy = false;
    }
  }

  // typed are values to show instead of those in the form.
  async function exchange(button, typed) {
    sent = typed ?? formState();
    const before = new Map(controls().map((control) => [control, stateOf(control)]));
    const body = new URLSearchParams(sent);
    body.append("action", button?.value ?? "preview");
    request = new AbortController();
    const response = await fetch(form.dataset.preview, {
      method: "POST",
      body,
      headers: { Accept: "text/html", "X-Requested-With": "fetch" },
      signal: request.signal,
    });
    if (response.status === 401) throw new Error("you are signed out. Sign in in another tab, or save and sign in afterwards");
    if (response.status === 409) throw new Error("another user is signed in now. Save to see what to do");
    const fresh = parse(await response.text()).querySelector(`#${CSS.escape(form.id)}`);
    await released;
    request.signal.throwIfAborted(); // the form was submitted, or typed into, in the meantime
    if (!fresh) throw new Error(`the server answered ${response.status}`);

    // Removing a row renames the inputs of the others: the values of the server apply.
    const moved = button?.value.startsWith("remove-");
    const changed = (control) => !moved && !typed && before.has(control) && before.get(control) !== stateOf(control);
    const typedSince = controls().some(changed);
    const focus = button?.dataset.focus;
    morph(form, fresh, changed);
    offer(false);
    if (focus) document.getElementById(focus)?.focus();
    sent = typedSince ? null : formState();
    if (guarded) keepInHistory(form);
    verifySoon();
  }

  function verifySoon() {
    clearTimeout(verifyTimer);
    if (form.querySelector("[data-verify]")) verifyTimer = setTimeout(verify, 400);
  }

  // Asks for what takes the server longer. Typing cancels it.
  async function verify() {
    if (busy || form.dataset.saving) return;
    busy = verifying = true;
    try {
      await exchange({ value: "verify", dataset: {} });
    } catch {
      sent = null; // the next preview says what is wrong
    } finally {
      busy = verifying = false;
    }
    send();
  }

  function say(text) {
    const status = form.querySelector("#preview-status");
    if (status && status.textContent !== text) status.textContent = text;
  }

  for (const type of ["input", "change"]) {
    form.addEventListener(type, () => {
      if (guarded) keepInHistory(form);
      if (verifying) request?.abort();
      offer(true);
      setTimeout(send);
    });
  }
  form.addEventListener("submit", (event) => {
    if (form.dataset.saving) return event.preventDefault(); // second press
    if (event.submitter?.hasAttribute("formaction")) return; // opens another page
    const action = event.submitter?.value ?? "review";
    if (!["save", "review", "apply"].includes(action)) {
      event.preventDefault();
      actions.push(event.submitter);
      if (verifying) request?.abort();
      return send();
    }
    form.dataset.saving = "true";
    request?.abort();
    form.querySelector(`.btn[value=${action}]`)?.setAttribute("aria-busy", "true");
    setTimeout(saveEnded, 25_000); // longer than the server takes to respond
  });

  // After a canceled save the page can be used again.
  function saveEnded() {
    delete form.dataset.saving;
    form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  }
  form.addEventListener("input", saveEnded);
  addEventListener("keydown", (event) => { if (event.key === "Escape") saveEnded(); });
  if (guarded) {
    addEventListener("beforeunload", (event) => { if (edited() && !form.dataset.saving) event.preventDefault(); });
  }

  // After Back or reload, the values are in the history or restored by the browser.
  sent = early ? null : formState();
  offer(early);
  verifySoon();
  addEventListener("pageshow", (event) => {
    saveEnded();
    if (guarded && !event.persisted && typedInHistory() && typedInHistory() !== formState()) restoring = typedInHistory();
    if (restoring || event.persisted || formState() !== sent) send();
  });
}

// --- Files that are edited as text -----------------------------------------

// What is read of a file is more than the server accepts, so that it rejects a longer one.
document.addEventListener("change", async ({ target }) => {
  const text = target.dataset.into && document.getElementById(target.dataset.into);
  if (!text || !target.files[0]) return;
  text.value = await target.files[0].slice(0, 300_000).text();
  target.value = "";
  text.dispatchEvent(new Event("input", { bubbles: true }));
});

// --- Filters ---------------------------------------------------------------

// A choice filters at once, and keeps the focus; a text or a day filters by the Enter key.
const chosenFilter = "kuota-chosen-filter";
document.addEventListener("change", ({ target }) => {
  if (!target.matches("form.filters[method=get] > .field select")) return;
  sessionStorage.setItem(chosenFilter, target.id);
  target.form.requestSubmit();
});
document.getElementById(sessionStorage.getItem(chosenFilter) ?? "")?.focus({ preventScroll: true });
sessionStorage.removeItem(chosenFilter);

// --- Dialogs ---------------------------------------------------------------

document.addEventListener("click", (event) => {
  const opener = event.target.closest?.("[data-dialog]");
  const dialog = opener && document.getElementById(opener.dataset.dialog);
  if (!dialog) return;
  event.preventDefault();
  dialog.showModal();
});

// --- Menus -----------------------------------------------------------------

// Escape closes an open menu and returns the focus to its button.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  const menu = "details:is(.column-choices, .range-own)[open]";
  const open = document.activeElement.closest(menu) ?? document.querySelector(menu);
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// --- Copying text -----------------------------------------------------------

// Browsers allow the clipboard only over TLS and on localhost. Otherwise the text
// is selected.
document.addEventListener("click", async (event) => {
  const id = event.target.closest?.("[data-copy]")?.dataset.copy;
  const source = id && document.getElementById(id);
  if (!source) return;
  let message = "Copied";
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source);
    message = "Selected: copy it with the keyboard";
  }
  const status = document.getElementById(`${id}-copied`);
  if (status) status.textContent = message;
});
