package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// servicesRun reports whether the cluster of these tests has the operator of
// LeaderWorkerSets, with which Kueue manages services.
var servicesRun = clustertest.Verify && strings.Contains(os.Getenv(kindsVariable), "lws")

// servingTest is a team of four GPUs whose member ada submits services, and a console that
// reads a Prometheus.
type servingTest struct {
	*clustertest.Cluster
	team, namespace string
	address         string // of the console
	ada             *http.Client
	metrics         atomic.Pointer[string] // that Prometheus scrapes
}

func newServingTest(t *testing.T) *servingTest {
	t.Helper()
	s := &servingTest{Cluster: clustertest.Get(t), team: clustertest.Name("serving")}
	s.namespace = "hyperpod-ns-" + s.team
	s.metrics.Store(new(string))
	deleteTeamAtEnd(t, s.team)
	t.Cleanup(func() {
		_, _ = s.TryKubectl("", "delete", "deployments,statefulsets,leaderworkersets", "--all", "-n", s.namespace, "--wait=false")
		_, _ = s.TryKubectl("", "delete", "clusterpolicy", "default", "--wait=false", "--ignore-not-found")
	})
	s.Apply(t, adminBinding)
	s.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec: {taskPrioritization: TaskRanking, priorityClasses: [{name: inference, weight: 90}, {name: dev, weight: 10}]}
`)
	s.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+s.team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	s.address = replica(t, "serving", append(signInEnv(s.Cluster), "KUOTA_PROMETHEUS_URL="+consoles.StartPrometheus(t, func() string { return *s.metrics.Load() }).Address, "KUOTA_IDLE_AFTER=1m")...)
	must(t, waitReady(s.address))
	s.ada = newUser(t, s.address, "ada")
	s.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/"+s.team, "clusterpolicy/default", "--timeout=180s")
	waitForQueues(t, s.Cluster, s.team)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		_, body := fetch(t, s.ada, s.address+"/teams/"+s.team+"/submit/service")
		if !strings.Contains(body, `id="submit-form"`) || !strings.Contains(body, "Pods per replica") {
			return fmt.Errorf("the page of a service has no form with all kinds: %s", body)
		}
		return nil
	})
	return s
}

// visit opens a page of the console as ada, with or without JavaScript.
func (s *servingTest) visit(t *testing.T, script bool, path string) playwright.Page {
	t.Helper()
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script), BaseURL: playwright.String(s.address)}, "status of 422")
	must(t, page.Context().AddCookies(cookiesOf(t, s.ada, s.address)))
	open(t, page, path)
	return page
}

// acceptedAsAda checks that the API server accepts a manifest that ada sees, unchanged.
func (s *servingTest) acceptedAsAda(t *testing.T, page playwright.Page, id string) {
	t.Helper()
	text, err := page.Locator("#" + id).TextContent()
	must(t, err)
	if out, err := s.TryKubectl(text, "create", "--dry-run=server", "-f", "-", "--as", "ada@example.com", "--as-group", "vision-team"); err != nil {
		t.Errorf("%s as ada: %s\n%s", id, out, text)
	}
}

// TestServices submits inference services and notebooks on their pages, with and without
// JavaScript, sees them run, scales and stops them, and finds an idle notebook.
func TestServices(t *testing.T) {
	if !servicesRun {
		t.Skip("needs the operator of LeaderWorkerSets: run by make verify")
	}
	s := newServingTest(t)
	press := func(t *testing.T, page playwright.Page, button string) {
		t.Helper()
		must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: button, Exact: playwright.Bool(true)}).Click())
	}
	fill := func(t *testing.T, page playwright.Page, values map[string]string) {
		t.Helper()
		for id, value := range values {
			must(t, page.Locator("#"+id).Fill(value))
		}
	}
	has := func(t *testing.T, page playwright.Page, selector, text string) {
		t.Helper()
		must(t, expect.Locator(page.Locator(selector)).ToContainText(text))
	}
	check := func(t *testing.T, page playwright.Page, script bool) {
		t.Helper()
		if !script {
			press(t, page, "Check")
		}
	}

	t.Run("notebook", func(t *testing.T) {
		s.Apply(t, `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: `+s.team+`}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /none}, claimRef: {namespace: `+s.namespace+`, name: ada-home}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ada-home, namespace: `+s.namespace+`}, spec: {storageClassName: none, volumeName: `+s.team+`, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`)
		t.Cleanup(func() { _, _ = s.TryKubectl("", "delete", "pv", s.team, "--wait=false") })
		for name, script := range map[string]bool{"with-script": true, "without": false} {
			t.Run(name, func(t *testing.T) {
				page := s.visit(t, script, "/teams/"+s.team+"/submit")
				must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Notebook", Exact: playwright.Bool(true)}).Click())
				has(t, page, "h1", "Submit a notebook")
				fill(t, page, map[string]string{"name": "7-" + name, "image": "example.com/jupyter:1", "accelerators": "1", "home": "ada-home", "home-size": "20"})
				press(t, page, "Submit")
				has(t, page, "#name-error", "Start with a letter")
				has(t, page, "#home-size-error", "not both")
				if script {
					checkAppearance(t, page, "notebook-wrong")
				}
				fill(t, page, map[string]string{"name": name, "home-size": ""})
				check(t, page, script)
				has(t, page, "#verdict", "It would be admitted now.")
				has(t, page, "#manifest-statefulset", "claimName: ada-home")
				has(t, page, "#reach-forward", "kubectl port-forward -n "+s.namespace+" statefulset/"+name+" 8888:8888")
				s.acceptedAsAda(t, page, "manifest-statefulset")
				if script {
					must(t, expect.Locator(page.Locator("#verdict-checked")).ToHaveAttribute("data-verified", "true"))
					checkAppearance(t, page, "notebook")
				}
				press(t, page, "Submit")
				must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/"+s.namespace+"/statefulset/"+name+"$")))
				s.running(t, "statefulset", name, 1)
				open(t, page, "/tasks/"+s.namespace+"/statefulset/"+name)
				has(t, page, "#task", "Running")
				if !script { // one of them stays, and becomes idle
					must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Stop", Exact: playwright.Bool(true)}).Click())
					press(t, page, "Stop")
					s.running(t, "statefulset", name, 0)
				}
			})
		}
		node := s.Kubectl(t, "", "get", "pod", "with-script-0", "-n", s.namespace, "-o", "jsonpath={.spec.nodeName}")
		idle := fmt.Sprintf("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",Hostname=%q,exported_namespace=%q,exported_pod=\"with-script-0\"} 1\n", node, s.namespace)
		s.metrics.Store(&idle)
	})

	t.Run("inference service", func(t *testing.T) { // three GPUs are left
		for name, script := range map[string]bool{"serves-with-script": true, "serves-without": false} {
			t.Run(name, func(t *testing.T) {
				page := s.visit(t, script, "/teams/"+s.team+"/submit/service")
				fill(t, page, map[string]string{"name": name, "image": "example.com/serve:1", "accelerators": "1", "replicas": "0", "port": "70000"})
				press(t, page, "Submit")
				has(t, page, "#replicas-error", "from 1 to 1,000")
				has(t, page, "#port-error", "from 1 to 65,535")
				if script {
					checkAppearance(t, page, "service-wrong")
				}
				fill(t, page, map[string]string{"replicas": "2", "port": "8000", "pods": "2"})
				check(t, page, script)
				has(t, page, "#manifest-leaderworkerset", "size: 2")
				has(t, page, "#verdict", "1 of its 2 replicas would be admitted now.")
				s.acceptedAsAda(t, page, "manifest-leaderworkerset")
				fill(t, page, map[string]string{"replicas": "5", "pods": "1"})
				check(t, page, script)
				has(t, page, "#manifest-deployment", "replicas: 5")
				has(t, page, "#verdict", "3 of its 5 replicas would be admitted now.")
				has(t, page, "#verdict", "never have more than 4 replicas")
				has(t, page, "#reach-forward", "deployment/"+name+" 8000:8000")
				has(t, page, "#manifests", "by a Service, which you cannot create here")
				s.acceptedAsAda(t, page, "manifest-deployment")
				if script {
					must(t, expect.Locator(page.Locator("#verdict-checked")).ToHaveAttribute("data-verified", "true"))
					has(t, page, "#verdict", "3 of its 5 replicas would be admitted now.")
					checkAppearance(t, page, "service")
				}
				press(t, page, "Submit")
				must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/tasks/"+s.namespace+"/deployment/"+name+"$")))
				s.running(t, "deployment", name, 3)
				open(t, page, "/tasks/"+s.namespace+"/deployment/"+name)
				has(t, page, ".task-lead", "3 of 5 replicas have quota")
				has(t, page, "#task", "Why do some replicas wait?")
				has(t, page, "#task", "3 of 5 replicas have quota; 2 wait.")
				if script {
					checkAppearance(t, page, "service-task")
				}
				must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Scale", Exact: playwright.Bool(true)}).Click())
				must(t, expect.Locator(page.Locator("#replicas")).ToHaveValue("5"))
				fill(t, page, map[string]string{"replicas": "0"})
				press(t, page, "Scale")
				has(t, page, "#replicas-error", "to scale it to 0, stop it")
				if script {
					checkAppearance(t, page, "scale")
				}
				fill(t, page, map[string]string{"replicas": "2"})
				press(t, page, "Scale")
				s.running(t, "deployment", name, 2)
				open(t, page, "/tasks/"+s.namespace+"/deployment/"+name)
				has(t, page, ".task-lead", "2 replicas have quota")
				must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Stop", Exact: playwright.Bool(true)}).Click())
				press(t, page, "Stop")
				s.running(t, "deployment", name, 0)
			})
		}
	})

	t.Run("idle notebook", func(t *testing.T) {
		page := s.visit(t, true, "/teams/"+s.team)
		must(t, playwright.NewPlaywrightAssertions(150_000).Locator(page.Locator("#idle-table")).ToContainText("with-script"))
		checkAppearance(t, page, "idle-team")
		open(t, page, "/tasks?team="+s.team)
		has(t, page, "#tasks-table .idle", "idle for at least")
		screenshot(t, page, "idle-list")
		open(t, page, "/tasks/"+s.namespace+"/statefulset/with-script")
		has(t, page, "#task .remark", "none was busier than 1.0 %")
		checkAppearance(t, page, "idle-task")
		open(t, page, "/teams/"+s.team)
		must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Stop with-script"}).Click())
		has(t, page, "h1", "Stop: with-script")
		press(t, page, "Stop")
		s.running(t, "statefulset", "with-script", 0)
		open(t, page, "/teams/"+s.team)
		must(t, expect.Locator(page.Locator("#idle-table")).ToHaveCount(0))
	})
}

// running waits until this many pods of a service run.
func (s *servingTest) running(t *testing.T, kind, name string, want int) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		out, err := s.TryKubectl("", "get", "pods", "-n", s.namespace, "-l", "app.kubernetes.io/name="+name, "-o", "jsonpath={.items[*].status.phase}")
		if err != nil || strings.Count(out, "Running") != want {
			return fmt.Errorf("%s %s: got pods %q (%v), want %d that run", kind, name, out, err, want)
		}
		return nil
	})
}
