package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	corev1 "k8s.io/api/core/v1"
)

// pageTimeout limits how long a page may take to show what a test expects.
const pageTimeout = 120_000.0 // milliseconds; several pages share two cores, and a timeout only ends a failure

// trainium is the instance type of the sample node with Neuron devices.
const trainium = "ml.trn1.32xlarge"

// trainiumNode adds a node of this type with as many devices as the sample node, for
// a test that needs all devices of a pool.
func trainiumNode(t *testing.T, instanceType string) {
	name := clustertest.Name(strings.ReplaceAll(instanceType, ".", "-"))
	clustertest.Get(t).Node(t, name, map[string]string{corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: name}, clustertest.Resources(map[corev1.ResourceName]string{
		neuron: "16", "cpu": "119810m", "memory": "472862Mi", "vpc.amazonaws.com/efa": "8", "pods": "110",
	}))
}

// expect has the assertions on pages, which wait up to pageTimeout.
var expect = playwright.NewPlaywrightAssertions(pageTimeout)

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open loads a path of the console in the browser, or an address.
func open(t testing.TB, page playwright.Page, path string) {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = base + path // a browser's BaseURL has no path
	}
	_, err := page.Goto(path)
	must(t, err)
}

// waitReady waits up to 30 seconds until the console reports ready.
func waitReady(address string) error {
	var last error
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		response, err := http.Get(address + "/readyz")
		if err != nil {
			last = err
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		last = fmt.Errorf("readyz: got %s, want 200", response.Status)
	}
	return fmt.Errorf("the console is not ready: %w", last)
}

// axe is the source of axe-core, which make browser installs.
var axe = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("KUOTA_BROWSER")
	if dir == "" {
		dir = filepath.Join(clustertest.Root(), ".local", "browser")
	}
	source, err := os.ReadFile(filepath.Join(dir, "axe", "axe.min.js"))
	return string(source), err
})

// accessible fails the test for each violation of WCAG 2.2 AA or of best practice
// that axe-core finds on the page.
func accessible(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	source, err := axe()
	must(t, err)
	if loaded, err := page.Evaluate(`() => "axe" in window`); err != nil || loaded != true {
		_, err = page.Evaluate(source)
		must(t, err)
	}
	// Scrolled, the header covers half of a link, which axe takes for a small one.
	found, err := page.Evaluate(`async () => {
		window.scrollTo(0, 0);
		const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
		const result = await axe.run(document, {runOnly: rules, resultTypes: ["violations"], elementRef: false});
		if (result.passes.length < 10) return ["axe checked too few rules: " + result.passes.length + " passed, want at least 10"];
		return result.violations.map(v => v.id + ": " + v.help + " at " + v.nodes.map(n => n.target.join(" ")).join(", "));
	}`)
	must(t, err)
	for _, violation := range found.([]any) {
		t.Errorf("%s: %v", name, violation)
	}
}

// screenshot stores a screenshot of the whole page with the artifacts, if
// KUOTA_SCREENSHOTS is set: drawing pages takes much of the time of these tests, and only
// people look at screenshots. A failed test takes its own.
func screenshot(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	if os.Getenv("KUOTA_SCREENSHOTS") == "" {
		return
	}
	_, err := page.Screenshot(playwright.PageScreenshotOptions{
		Path: playwright.String(filepath.Join(artefacts(), name+".png")), FullPage: playwright.Bool(true),
	})
	must(t, err)
}

// journal is a script that notes what happens to a page, for showFailure.
const journal = `(() => {
	const note = (text) => { try { sessionStorage.journal = ((sessionStorage.journal ?? "") + "\n" + new Date().toISOString().slice(14, 23) + " " + text).slice(-4000); } catch {} };
	const nameOf = (e) => e ? (e.tagName ?? "document") + (e.id ? "#" + e.id : "") : "nothing";
	note("load " + location.pathname);
	for (const type of ["pointerdown", "pointerup", "click", "change"]) {
		addEventListener(type, (e) => note(type + " " + nameOf(e.target)), true);
	}
	addEventListener("submit", (e) => note("submit by " + nameOf(e.submitter) + ", prevented: " + e.defaultPrevented));
	for (const type of ["beforeunload", "pagehide", "pageshow"]) addEventListener(type, () => note(type));
	const fetch = window.fetch;
	window.fetch = (url, options) => {
		note("fetch " + url);
		return fetch(url, options).then((r) => { note("answer " + r.status); return r; }, (e) => { note("failed: " + e); throw e; });
	};
})()`

// showFailure logs what the page shows of a failure and what happened to it, and takes a
// screenshot.
func showFailure(t testing.TB, page playwright.Page) {
	t.Helper()
	name := "failed-" + strings.ReplaceAll(t.Name(), "/", "-")
	_, _ = page.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String(filepath.Join(artefacts(), name+".png")), FullPage: playwright.Bool(true)})
	text, err := page.Evaluate(`() => [...document.querySelectorAll("#form-errors, .error, .notice")].map((e) => e.innerText).join("\n") + "\n" + sessionStorage.journal`)
	t.Logf("%s shows, and what happened to it (%v): %v", page.URL(), err, text)
}

// drawn returns when the browser has drawn the page as it is now.
func drawn(page playwright.Page) error {
	_, err := page.Evaluate(`() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
	return err
}

// hidden is a script that returns what the open page hides sideways: the innermost elements that
// are wider than the window, scroll, are cut, or leave their box. Code and logs may scroll, what is
// only read aloud has no width, and a chart that is folded is drawn when it is opened.
const hidden = `() => {
	const exempt = "pre, code, textarea, input, select, svg, canvas, .uplot, .yaml, .log-lines, .visually-hidden, .skip";
	const nameOf = (e) => {
		const table = e.closest(".scroll"), cell = e.closest("th, td"), within = e.closest("[id]");
		const name = e.localName + [...e.classList].map((c) => "." + c).join("");
		return table && cell ? "#" + table.id + " column " + (cell.cellIndex + 1) + " " + name : (within ? "#" + within.id + " " : "") + (within === e ? "" : name);
	};
	const width = document.documentElement.clientWidth, wide = document.documentElement.scrollWidth > width;
	const over = (e) => Math.max(e.scrollWidth - e.clientWidth - 2, wide ? Math.round(e.getBoundingClientRect().right) - width : 0);
	const found = [...document.body.querySelectorAll("*")].filter((e) => e.clientWidth > 1 && e.checkVisibility() && over(e) > 0 && !e.closest(exempt));
	const inner = found.filter((e, i) => !e.contains(found[i + 1] ?? null));
	return [...new Set(inner.map((e) => nameOf(e) + ": " + over(e) + " px"))];
}`

// fits fails the test for each part of the page that is hidden sideways.
func fits(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	found, err := page.Evaluate(hidden)
	must(t, err)
	for _, part := range found.([]any) {
		t.Errorf("%s: %v", name, part)
	}
}

// eachAppearance calls check with the open page in light and dark mode and in a narrow
// window.
func eachAppearance(t testing.TB, page playwright.Page, check func(appearance string, width int)) {
	t.Helper()
	const wide, narrow = 1280, 390
	show := func(scheme *playwright.ColorScheme, width int) {
		must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: scheme}))
		must(t, page.SetViewportSize(width, 844))
		// A click between the change and the next frame is at the old place of its button.
		must(t, drawn(page))
	}
	show(playwright.ColorSchemeLight, wide)
	check("light", wide)
	show(playwright.ColorSchemeDark, wide)
	check("dark", wide)
	show(playwright.ColorSchemeLight, narrow)
	check("390", narrow)
	show(playwright.ColorSchemeLight, wide)
}

// checkAppearance checks in each appearance that the open page fits the window and is
// accessible, and takes screenshots. In make test axe-core sees the page in light mode only: it
// takes a third of these tests' time, and the colors of both modes have a test in static.
func checkAppearance(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	eachAppearance(t, page, func(appearance string, _ int) {
		fits(t, page, name+"-"+appearance)
		if appearance == "light" || clustertest.Verify {
			accessible(t, page, name+"-"+appearance)
		}
		screenshot(t, page, name+"-"+appearance)
	})
}

// jobManifest returns a batch Job in the team's queue that requests GPUs.
func jobManifest(team, name string, gpus int) string {
	return strings.NewReplacer("TEAM", team, "NAME", name, "GPUS", fmt.Sprint(gpus), "CPUS", fmt.Sprint(gpus*8)).Replace(`
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  namespace: hyperpod-ns-TEAM
  labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-TEAM-localqueue}
spec:
  parallelism: 1
  completions: 1
  template:
    metadata:
      annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: example.com/train:1
        resources:
          requests: {cpu: "CPUS", memory: 8Gi, nvidia.com/gpu: "GPUS"}
          limits: {nvidia.com/gpu: "GPUS"}
`)
}
