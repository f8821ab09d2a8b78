# SPDX-License-Identifier: Apache-2.0
"""A client of Kuota for notebooks: submits tasks to the queue of a team, and watches them.

    import kuota
    queue = kuota.Queue("vision", share="research")
    job = queue.submit(["python", "train.py"], gpus=2, image="pytorch/pytorch", priority_class="training")
    print(queue.snapshot())
    job.wait()

It needs Python 3.11 and nothing else. Methods that ask the console raise KuotaError.
"""

from __future__ import annotations

import base64
import http.client
import html
import ipaddress
import json
import os
import re
import secrets
import shlex
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

STATUSES = ("Pending", "Preempted", "Starting", "Running", "Stopping", "Stopped", "Succeeded", "Failed", "Held by the loop guard")
FINISHED = ("Succeeded", "Failed")
ENDED = ("Succeeded", "Failed", "Stopped")  # a stopped task can be resumed

_TIMEOUT = 60.0  # of an answer, in seconds
_LISTED = 30.0  # how long the console may take to list a submitted task, in seconds
_MARGIN = timedelta(seconds=30)  # before the end of a token it is refreshed
_PASSING = (0, 429, 502, 503, 504)  # statuses that end by themselves


class KuotaError(Exception):
    """An error of the console, or of the way to it.

    status is the HTTP status, or 0 if no answer came. detail says what is wrong and what to do. fields
    has (field, message) for each value that is not valid.
    """

    def __init__(self, status: int, detail: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(status, detail, tuple(fields))
        self.status, self.detail, self.fields = status, detail, tuple(fields)

    def __str__(self) -> str:
        return "\n  ".join([self.detail] + [f"{name}: {message}" if name else message for name, message in self.fields])


class Client:
    """A console and the user who asks it.

    server is the address of the console; default KUOTA_SERVER. token is the user's; default KUOTA_TOKEN,
    else the ID token that `kuota login` stored, which is refreshed when it ends. ca_file has the CA of a
    console with a private certificate, in PEM. Without encryption only a console on this machine is used.
    """

    def __init__(self, server: str | None = None, token: str | None = None, ca_file: str | None = None) -> None:
        self.server = _address(server or os.environ.get("KUOTA_SERVER", ""))
        self._token = (token or os.environ.get("KUOTA_TOKEN", "")).strip()
        if not re.fullmatch(r"[!-~]*", self._token):
            raise KuotaError(0, "the token has spaces or letters that no token has")
        self._tls = ssl.create_default_context()
        if ca_file:
            self._tls.load_verify_locations(ca_file)
        self._refreshing = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self.server!r})"

    def call(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, key: str = "") -> Any:
        """Sends a request to a path below /api/v1, and returns the answer.

        key is the Idempotency-Key of a POST. A GET, or a POST with a key, is sent once more if the connection
        breaks.
        """
        try:
            with self.open(method, path, query, body, key) as response:
                return _read(response)
        except KuotaError as error:
            if error.status or method != "GET" and not key:
                raise
        with self.open(method, path, query, body, key) as response:
            return _read(response)

    def open(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, key: str = "", timeout: float | None = _TIMEOUT,
    ) -> http.client.HTTPResponse:
        """Sends a request and returns the answer, which the caller closes. timeout is in seconds."""
        values = urllib.parse.urlencode({name: value for name, value in (query or {}).items() if value})
        request = urllib.request.Request(f"{self.server}/api/v1{path}?{values}".rstrip("?"), method=method, headers={"User-Agent": "kuota-python"})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Idempotency-Key", key)
        with self._refreshing:
            token = self._token or _stored_token(self.server, self._tls)
        if token:
            request.add_header("Authorization", "Bearer " + token)
        return _open(request, self._tls, timeout)


class Queue:
    """The queue of a team, or of one of its shares. client is shared between queues; default Client()."""

    def __init__(self, team: str, share: str | None = None, client: Client | None = None) -> None:
        self.team, self.share, self.client = team, share, client or Client()

    def __repr__(self) -> str:
        return f"Queue({self.team!r}, share={self.share!r})" if self.share else f"Queue({self.team!r})"

    def submit(
        self, command: str | Sequence[str], name: str | None = None, gpus: int | None = None, pods: int = 1,
        cpu: float | None = None, memory: float | None = None, image: str | None = None, priority_class: str | None = None,
        pool: str | None = None, env: Mapping[str, Any] | None = None, time_limit: str | timedelta | None = None, after: Sequence[Job | str] = (),
        priority: int | None = None, **more: Any,
    ) -> Job:
        """Submits a task of equal pods, and returns it once the console lists it.

        command is a list of arguments, or a line for sh. name is by default that of the script with some letters.
        gpus (or Neuron devices), cpu (vCPU) and memory (GiB) are of each pod; what is left out is in proportion to
        the node. image is by default KUOTA_IMAGE; priority_class the lowest; pool the first of the team.
        priority is a number from 0 to 99 instead of a class, if the policy allows numbers.
        time_limit is a timedelta or text such as 1h30m. after are tasks of the namespace, by name or as returned
        before, that must have succeeded when it starts; "name:any" may fail. more are further fields of the API, such as
        volumes=["/data=datasets:ro"], tries=2 or array="1-200%20". Raises KuotaError with status 422 and fields for values that
        are not valid.
        """
        task = self._task(command, name, gpus, pods, cpu, memory, image, priority_class, pool, env, time_limit, **more)
        return self._submit({"task": task, **_options(after, priority)})[0]

    def submit_manifest(self, text: str, after: Sequence[Job | str] = (), priority: int | None = None) -> list[Job]:
        """Submits the tasks of a manifest, in YAML or JSON: all, or none if one is not valid.

        The team's namespace and queue replace those of the manifest, so share is not used here: name the queue
        of a share in the manifest. changed in info of a job has what the console changes.
        """
        return self._submit({"manifest": text, **_options(after, priority)})

    def check(self, command: str | Sequence[str], after: Sequence[Job | str] = (), priority: int | None = None, **options: Any) -> Verdict:
        """Returns what would happen to a task with the arguments of submit, and submits nothing."""
        task = self._send({"task": self._task(command, **options), **_options(after, priority)}, dry_run=True)[0]
        known = {name: value for name, value in task["verdict"].items() if name in Verdict.__dataclass_fields__}
        return Verdict(manifest=task["manifest"], **known)

    def jobs(self, status: str | None = None, mine: bool = False) -> list[Job]:
        """Returns the tasks of the team, of all its shares: those that have not ended, or in one of STATUSES.

        mine selects those that the user submitted.
        """
        query = {"team": self.team, "status": status, "mine": "true" if mine else ""}
        rows = {row["uid"]: row for page in self._pages("/tasks", query) for row in page["tasks"]}
        return [Job._of(self.client, row) for row in rows.values()]

    def snapshot(self, limit: int = 100) -> Snapshot:
        """Returns the first waiting tasks of the team, of all its shares, in the order in which Kueue tries to start them."""
        rows: list[Waiting] = []
        for page in self._pages("/queue", {"team": self.team}):
            for row in page["tasks"]:
                waiting = Waiting(row.get("position", 0), row["name"], row["kind"], row.get("priorityClass", ""), row["requests"], row["waitedSeconds"], row["reason"])
                rows.append(waiting)
            if len(rows) >= limit:
                break
        return Snapshot(self.team, page["waiting"], rows[:limit])

    def _pages(self, path: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        number, pages = 1, 1
        while number <= pages:
            page = self.client.call("GET", path, {**query, "page": number})
            number, pages = number + 1, page["pages"]
            yield page

    def _task(
        self, command: str | Sequence[str], name: str | None = None, gpus: int | None = None, pods: int = 1,
        cpu: float | None = None, memory: float | None = None, image: str | None = None, priority_class: str | None = None,
        pool: str | None = None, env: Mapping[str, Any] | None = None, time_limit: str | timedelta | None = None, **more: Any,
    ) -> dict[str, Any]:
        if isinstance(time_limit, timedelta):
            time_limit = f"{int(time_limit.total_seconds())}s"
        task = {
            "name": name or _name_of(command), "command": command if isinstance(command, str) else shlex.join(command),
            "accelerators": gpus, "pods": pods, "vcpu": None if cpu is None else str(cpu), "memory": None if memory is None else str(memory),
            "image": image or os.environ.get("KUOTA_IMAGE"), "class": priority_class, "pool": pool, "share": self.share,
            "env": {variable: str(value) for variable, value in (env or {}).items()}, "timeLimit": time_limit, **more,
        }
        return {name: value for name, value in task.items() if value is not None}

    def _send(self, body: dict[str, Any], dry_run: bool = False) -> list[dict[str, Any]]:
        path = f"/teams/{urllib.parse.quote(self.team, safe='')}/tasks"
        query = {"dryRun": "true"} if dry_run else None
        answer: list[dict[str, Any]] = self.client.call("POST", path, query, body, key=str(uuid.uuid4()))["tasks"]
        return answer

    def _submit(self, body: dict[str, Any]) -> list[Job]:
        until = time.monotonic() + _LISTED
        return [Job._of(self.client, row)._listed(until) for row in self._send(body)]


@dataclass
class Job:
    """A task: a Job, a RayJob or another kind. info is what the console answered about it last."""

    client: Client = field(repr=False, compare=False)
    namespace: str
    kind: str
    name: str
    uid: str = field(default="", compare=False)  # of a submitted task empty until an action answers it
    last_status: str = field(default="", compare=False)
    info: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Job {self.namespace}/{self.kind.lower()}/{self.name}{' ' if self.last_status else ''}{self.last_status}>"

    @classmethod
    def _of(cls, client: Client, row: dict[str, Any]) -> Job:
        return cls(client, row["namespace"], row["kind"], row["name"], row.get("uid", ""), row.get("status", ""), row)

    def _listed(self, until: float) -> Job:
        """Waits until the console lists the task, at most until a time of the monotonic clock."""
        while time.monotonic() < until:
            try:
                self.status()
                break
            except KuotaError as error:
                if error.status not in (404, *_PASSING):
                    break  # it was submitted; what reads it next raises the error
            time.sleep(0.25)
        return self

    def status(self) -> str:
        """Returns one of STATUSES. Raises KuotaError with status 404 if the task was deleted."""
        self.last_status = str(self._get("/why")["status"])
        return self.last_status

    def why(self) -> Why:
        """Returns why the task waits, what would start it, and when it probably starts.

        It waits up to 30 seconds for the simulation that checks what would start it. The console repeats a
        simulation when something has changed, so that changes can be some seconds old.
        """
        until = time.monotonic() + 30
        while True:
            answer = self._get("/why")
            reasons = answer.get("why") or {}
            if reasons.get("checked", {}).get("state") != "computing" or time.monotonic() > until:
                break
            time.sleep(1)
        self.last_status = answer["status"]
        changes = []
        for change in reasons.get("changes", []):
            tasks = ", ".join(task["name"] for task in change.get("tasks", []))
            changes.append(_joined(change.get("title"), change.get("text"), tasks, change.get("after")))
        estimate = answer.get("estimate") or {}
        starts = estimate.get("text") or estimate.get("in", "")
        return Why(answer["status"], answer.get("position", ""), reasons.get("headline", ""), reasons.get("text", ""), changes, starts, answer)

    def progress(self) -> dict[str, Any] | None:
        """Returns how far a training is, or None for a task that does not report it.

        It has at and step, and, as far as the training reports them, samples, samplesPerSecond, loss, workers,
        checkpoint and checkpointSeconds. Times are text in RFC 3339.
        """
        self.info = self._get("")
        self.last_status = self.info["status"]
        progress: dict[str, Any] | None = self.info.get("progress")
        return progress

    def wait(self, timeout: float | None = None, until: str | Iterable[str] = ENDED) -> str:
        """Waits for one of the statuses until, or the end of the task, and returns the status.

        It asks twice a second at first, and every 15 seconds at last. timeout is in seconds; after it
        TimeoutError is raised. A stopped task ends the wait only by default, because it can be resumed.
        """
        wanted = {until} if isinstance(until, str) else set(until)
        if unknown := wanted - set(STATUSES):
            raise ValueError(f"no such status: {', '.join(sorted(unknown))}; want some of {', '.join(STATUSES)}")
        began, failures = time.monotonic(), 0
        while True:
            try:
                status, failures = self.status(), 0
                if status in wanted or status in FINISHED:
                    return status
            except KuotaError as error:
                failures += 1
                if error.status not in _PASSING or failures > 10:
                    raise
            waited = time.monotonic() - began
            pause = min(15.0, 0.5 + waited / 20)
            if timeout is not None:
                if waited >= timeout:
                    raise TimeoutError(f"{self.name} is {self.last_status or 'unknown'} after {timeout:g} s, not {' or '.join(sorted(wanted))}")
                pause = min(pause, timeout - waited)
            time.sleep(pause)

    def logs(self, follow: bool = False, pod: str = "", container: str = "") -> Iterator[str]:
        """Yields the lines of a log, as the container wrote them; by default of the first container of the first pod.

        follow waits for more lines until the container ends. Where the connection breaks, it is opened once more,
        and goes on after the last line. Raises KuotaError with status 404 if the task has no pods now.
        """
        query = {"pod": pod, "container": container, "uid": self.uid, "timestamps": "true", "follow": "true" if follow else ""}
        last = ""  # the time of the last line
        for again in (False, True):
            seen = last
            try:
                with self.client.open("GET", self._path("/logs"), query, timeout=None if follow else _TIMEOUT) as response:
                    for line in response:
                        at, _, text = line.decode("utf-8", "replace").rstrip("\r\n").partition(" ")
                        if at > seen:
                            last = at
                            yield text
            except (OSError, http.client.HTTPException) as error:
                if again or not follow:
                    raise KuotaError(0, f"the log was cut off: {error}") from error
            if not follow or self.status() in ENDED:
                return

    def stop(self) -> None:
        """Stops the task: its pods end, and it waits until it is resumed."""
        self._act("stop")

    def resume(self) -> None:
        """Returns a stopped task to its queue."""
        self._act("resume")
        until = time.monotonic() + _LISTED
        while self.status() == "Stopped" and time.monotonic() < until:
            time.sleep(0.25)

    def set_class(self, name: str) -> None:
        """Changes the priority class. Raises ValueError with the choices if there is no such class."""
        review = self._act("class", dry_run=True)
        if review.get("obstacle"):
            raise KuotaError(409, review["obstacle"])
        choices = review.get("choices", [])
        chosen = [choice for choice in choices if name in (choice, choice.removesuffix("-priority"))]
        if not chosen:
            raise ValueError(f"no such priority class: {name}; want one of {', '.join(c.removesuffix('-priority') for c in choices)}")
        self._act("class", {"class": chosen[0]})

    def set_priority(self, number: int) -> None:
        """Changes the priority to a number from 0 to 99. Raises KuotaError if the policy allows no numbers."""
        self._act("class", {"class": str(number)})

    def again(self, name: str | None = None) -> Job:
        """Submits the task once more, and returns the new one. name is by default the next number of its series."""
        task = self._act("again", {"name": name or ""})["task"]
        return Job._of(self.client, task)._listed(time.monotonic() + _LISTED)

    def delete(self) -> None:
        """Deletes the task and its pods."""
        self.client.call("DELETE", self._path(""), {"uid": self.uid})

    def _path(self, path: str) -> str:
        return "/tasks/" + "/".join(urllib.parse.quote(part, safe="") for part in (self.namespace, self.kind.lower(), self.name)) + path

    def _get(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.call("GET", self._path(path), {"uid": self.uid})
        return answer

    def _act(self, action: str, values: dict[str, Any] | None = None, dry_run: bool = False) -> dict[str, Any]:
        body = {"uid": self.uid, **(values or {})} if self.uid else values or {}
        answer: dict[str, Any] = self.client.call("POST", self._path("/" + action), {"dryRun": "true"} if dry_run else None, body)
        if action != "again":
            self.uid = self.uid or answer["task"].get("uid", "")
        return answer


@dataclass
class Verdict:
    """What Kueue would do with a task. outcome is Starts, Preempts, Waits, Never or Unknown."""

    outcome: str
    headline: str
    simulated: bool  # with Kueue's scheduler
    manifest: str = field(repr=False)  # as the task would be created
    text: str = ""
    notes: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)  # names of tasks

    def __str__(self) -> str:
        return _joined(self.headline, self.text, *self.notes)


@dataclass
class Why:
    """Why a task waits, in the words of its page. Each of changes would start it."""

    status: str
    position: str  # in the queue of its share, such as 3rd of 12
    headline: str
    text: str
    changes: list[str]
    estimate: str  # of the start; empty for none
    answer: dict[str, Any] = field(repr=False)  # all that the console answered

    def __str__(self) -> str:
        head = ", ".join(filter(None, [self.status, self.position]))
        return "\n".join(_joined(line) for line in [head, self.headline, self.text, *("  " + c for c in self.changes), self.estimate] if line)


@dataclass
class Waiting:
    """A waiting task of a snapshot."""

    position: int  # in the queue of the team, from 1; 0 if it is not known
    name: str
    kind: str
    priority_class: str
    requests: dict[str, float | None]  # by resource: cpu in vCPU, memory in GiB, others as counts
    waited: float  # seconds
    reason: str


@dataclass
class Snapshot:
    """The first waiting tasks of a team. A notebook shows it as a table, and print as text."""

    team: str
    waiting: int  # tasks, with those that are not in rows
    rows: list[Waiting]

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self.rows)

    def _cells(self) -> list[list[str]]:
        cells = [["#", "task", "class", "requests", "waits", "reason"]]
        for row in self.rows:
            requests = ", ".join(f"{amount:g} {_UNITS.get(name) or name.rpartition('/')[2]}" for name, amount in row.requests.items() if amount is not None)
            cells.append([str(row.position or "-"), row.name, row.priority_class or "-", requests, str(timedelta(seconds=int(row.waited))), row.reason])
        return [[_joined(cell) for cell in line] for line in cells]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
        return "\n".join([f"{self.waiting} waiting in {self.team}", *lines])

    def _repr_html_(self) -> str:
        head, *rows = [[html.escape(cell) for cell in line] for line in self._cells()]
        lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        return f"<table><caption>{self.waiting} waiting in {html.escape(self.team)}</caption>{''.join(lines)}</table>"


_UNITS = {"cpu": "vCPU", "memory": "GiB"}


def _options(tasks: Sequence[Job | str], priority: int | None) -> dict[str, Any]:
    names = [one if isinstance(one, str) else f"{one.kind.lower()}/{one.name}" for one in tasks]
    return {**({"after": names} if names else {}), **({} if priority is None else {"priority": priority})}


def _name_of(command: str | Sequence[str]) -> str:
    """Returns a name for a command: of its script or its program, with some letters."""
    words = command.split() if isinstance(command, str) else list(command)
    scripts = [word for word in words[1:] if word.endswith((".py", ".sh"))]
    base = re.sub(r"[^a-z0-9]", "-", Path([*scripts, *words, "task"][0]).stem.lower()).strip("-")
    if not base or base[0].isdigit():
        base = "task"
    return f"{base[:40].rstrip('-')}-{secrets.token_hex(3)}"


def _joined(*parts: str | None) -> str:
    """Returns texts on one line, without characters that act on a terminal."""
    return "".join(c if c.isprintable() else " " for c in " ".join(part for part in parts if part))


def _address(text: str) -> str:
    """Returns an address of a console or an issuer, if a token may be sent there."""
    address = text.strip().rstrip("/")
    try:
        parts = urllib.parse.urlsplit(address)
        host, _ = parts.hostname or "", parts.port  # of a port that is no number it raises ValueError
    except ValueError:
        host, parts = "", urllib.parse.urlsplit("")
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment or "@" in parts.netloc:
        raise KuotaError(0, f"{text!r} is no address of a console; set KUOTA_SERVER, such as https://kuota.example.com")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if parts.scheme == "http" and not local:
        raise KuotaError(0, f"{address} has no encryption, and a token is secret; use https")
    return address


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keeps a token from being sent elsewhere: a redirect is an error."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _open(request: urllib.request.Request, tls: ssl.SSLContext, timeout: float | None) -> http.client.HTTPResponse:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), urllib.request.HTTPSHandler(context=tls)]
    if request.type == "http":  # of this machine: not through a proxy, which would read the token
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        response: http.client.HTTPResponse = urllib.request.build_opener(*handlers).open(request, timeout=timeout)
        return response
    except urllib.error.HTTPError as error:
        raise _problem(error) from None
    except (OSError, http.client.HTTPException) as error:
        raise KuotaError(0, f"{request.host} does not answer: {getattr(error, 'reason', None) or error}") from error


def _problem(answer: urllib.error.HTTPError) -> KuotaError:
    """Returns the error of an answer, which is application/problem+json (RFC 9457) if the console sent it."""
    try:
        with answer:
            sent = dict(json.loads(answer.read()))
    except (OSError, ValueError, TypeError, http.client.HTTPException):
        sent = {}
    detail = str(sent.get("detail") or sent.get("error") or f"the console answered {answer.code} {answer.reason}")
    if answer.code == 401:
        detail += " Sign in with kuota login, or set KUOTA_TOKEN."
    fields = [(str(e.get("field", "")), str(e.get("message", ""))) for e in sent.get("errors") or [] if isinstance(e, dict)]
    return KuotaError(answer.code, detail, fields)


def _read(response: http.client.HTTPResponse) -> Any:
    try:
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise KuotaError(0, f"the answer ended early: {error}") from error
    try:
        return json.loads(text)
    except ValueError:
        raise KuotaError(response.status, "the answer is no JSON; is this the address of a console?") from None


def _stored_token(server: str, tls: ssl.SSLContext) -> str:
    """Returns the ID token that `kuota login` stored, refreshed if it ends; empty for none."""
    folders = {"win32": os.environ.get("AppData", ""), "darwin": Path.home() / "Library" / "Application Support"}
    folder = folders.get(sys.platform) or os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(folder) / "kuota" / "credentials.json"
    try:
        stored = json.loads(path.read_text("utf-8"))
        found = stored.get(server)
        ends = datetime.fromisoformat(found["expires"]) if found else None
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise KuotaError(0, f"{path} cannot be read. Sign in with kuota login") from None
    if not found or ends is None:
        return ""
    if ends - datetime.now(timezone.utc) <= _MARGIN:
        found = stored[server] = _refreshed(found, tls)
        _write(path, stored)
    return str(found["idToken"])


def _refreshed(found: dict[str, Any], tls: ssl.SSLContext) -> dict[str, Any]:
    """Returns a credential with a new ID token, which the console verifies; here only its end matters."""
    if not found.get("refreshToken"):
        raise KuotaError(401, "you are signed out. Sign in with kuota login")
    try:
        with _open(urllib.request.Request(_address(found["issuer"]) + "/.well-known/openid-configuration"), tls, _TIMEOUT) as response:
            provider = _read(response)
        if provider["issuer"] != found["issuer"]:
            raise ValueError
        form = {"grant_type": "refresh_token", "refresh_token": found["refreshToken"], "client_id": found["clientID"]}
        with _open(urllib.request.Request(_address(provider["token_endpoint"]), urllib.parse.urlencode(form).encode()), tls, _TIMEOUT) as response:
            answer = _read(response)
        payload = answer["id_token"].split(".")[1]
        ends = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"]
        found = {**found, "idToken": answer["id_token"], "expires": datetime.fromtimestamp(ends, timezone.utc).isoformat()}
        return {**found, "refreshToken": answer.get("refresh_token") or found["refreshToken"]}
    except KuotaError as error:
        raise KuotaError(error.status and 401, f"your sign-in ended. Sign in with kuota login: {error.detail}") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise KuotaError(401, "the sign-in provider sent no ID token. Sign in with kuota login") from None


def _write(path: Path, stored: dict[str, Any]) -> None:
    """Replaces the file at once, readable by the user only, so that no other program reads a part of it."""
    descriptor, name = tempfile.mkstemp(prefix=".credentials-", dir=path.parent)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(stored, indent=2) + "\n")
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
