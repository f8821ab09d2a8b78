package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	corev1 "k8s.io/api/core/v1"
)

// patience is how long a page may take to show what is expected of it.
const patience = 20_000.0 // milliseconds; several pages share two cores

// trainium is the type of the sample node with Neuron devices.
const trainium = "ml.trn1.32xlarge"

// trainiumNode adds a node of this type, with as many devices as the sample's, for
// a test that needs all devices of a pool.
func trainiumNode(t *testing.T, instanceType string) {
	name := clustertest.Name(strings.ReplaceAll(instanceType, ".", "-"))
	clustertest.Get(t).Node(t, name, map[string]string{corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: name}, clustertest.Resources(map[corev1.ResourceName]string{
		neuron: "16", "cpu": "119810m", "memory": "472862Mi", "vpc.amazonaws.com/efa": "8", "pods": "110",
	}))
}

var see = playwright.NewPlaywrightAssertions(patience)

// must fails the test on an error of the browser.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, page playwright.Page, path string) {
	t.Helper()
	_, err := page.Goto(path)
	must(t, err)
}

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
		last = fmt.Errorf("readyz answers %s", response.Status)
	}
	return fmt.Errorf("the console is not ready: %w", last)
}

// accessible fails the test where axe-core finds something that somebody
// cannot read or use, by the rules of WCAG 2.2 AA.
func accessible(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	dir := os.Getenv("KUOTA_BROWSER")
	if dir == "" {
		dir = filepath.Join(clustertest.Root(), ".local", "browser")
	}
	source, err := os.ReadFile(filepath.Join(dir, "axe", "axe.min.js"))
	must(t, err)
	_, err = page.Evaluate(string(source))
	must(t, err)
	found, err := page.Evaluate(`async () => {
		const result = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]});
		if (result.passes.length < 10) return ["axe looked at almost nothing: " + result.passes.length + " rules"];
		return result.violations.map(v => v.id + ": " + v.help + " at " + v.nodes.map(n => n.target.join(" ")).join(", "));
	}`)
	must(t, err)
	for _, violation := range found.([]any) {
		t.Errorf("%s: %v", name, violation)
	}
}

// picture keeps a screenshot of the whole page.
func picture(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	_, err := page.Screenshot(playwright.PageScreenshotOptions{
		Path: playwright.String(filepath.Join(artefacts(), name+".png")), FullPage: playwright.Bool(true),
	})
	must(t, err)
}

// fits fails the test when the page is wider than the window.
func fits(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	over, err := page.Evaluate(`() => document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	must(t, err)
	if n := fmt.Sprint(over); n != "0" {
		t.Errorf("%s: the page is %s px wider than the window", name, n)
	}
}

// jobManifest is a plain batch Job that asks for GPUs of one instance type.
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
