package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// received are the alerts that a receiver got, as "state rule team".
type received struct {
	mu       sync.Mutex
	messages int
	alerts   []string
}

func (r *received) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var m struct {
		Alerts []struct{ State, Rule, Team string }
	}
	err := json.NewDecoder(request.Body).Decode(&m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		m.Alerts = nil
	}
	r.messages++
	for _, a := range m.Alerts {
		r.alerts = append(r.alerts, a.State+" "+a.Rule+" "+a.Team)
	}
}

func (r *received) count(alert string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.alerts {
		if a == alert {
			n++
		}
	}
	return n
}

// TestAlertsPage lets a task wait for too long on the real Kueue: the alert fires once
// within 30 seconds on the page of its member and at the receiver, and resolves when the
// task ends. The receiver hears of that a minute later, which only make verify waits for.
func TestAlertsPage(t *testing.T) {
	c := clustertest.Get(t)
	console(t)
	receiver := &received{}
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	c.Apply(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"alert-receiver","namespace":"kuota-system"},"stringData":{"url":"`+server.URL+`"}}`)
	noPolicy(t)
	c.Apply(t, `{"apiVersion":"kuota.dev/v1alpha1","kind":"ClusterPolicy","metadata":{"name":"default"},"spec":{"alerts":{"rules":[{"rule":"task-waits","after":"5s"}],"receivers":[{"name":"ops","secretName":"alert-receiver"}]}}}`)
	const instanceType = "ml.trn1.alerts"
	trainiumNode(t, instanceType)
	team := makePoolTeam(t, instanceType, "alerts", "accelerators: 8")
	c.Apply(t, neuronJob(team, "holder", 8))
	runsSoon(t, team, "holder")
	c.Apply(t, neuronJob(team, "late", 8))
	caused := time.Now().Add(5 * time.Second)

	ada := user(t, console(t), "ada")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if _, body := fetch(t, ada, console(t)+"/alerts.json"); !strings.Contains(body, team) {
			return fmt.Errorf("alerts: got no %s, want one", team)
		}
		return nil
	})
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/alerts")
	firing := page.Locator("#alerts-firing-table tbody tr").Filter(playwright.LocatorFilterOptions{HasText: team})
	must(t, expect.Locator(firing).ToHaveCount(1))
	must(t, expect.Locator(firing).ToContainText("Job late"))
	must(t, expect.Locator(page.Locator("#alerts-count")).ToContainText("firing"))
	must(t, expect.Locator(page.Locator("main form")).ToHaveCount(0))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if receiver.count("firing task-waits "+team) != 1 {
			return fmt.Errorf("the receiver has no alert of %s", team)
		}
		return nil
	})
	t.Logf("the receiver had the alert %s after its cause", time.Since(caused).Round(time.Second))
	checkAppearance(t, page, "alerts")
	markLoaded(t, page)
	c.Kubectl(t, "", "delete", "job", "late", "-n", "hyperpod-ns-"+team)
	must(t, expect.Locator(firing).ToHaveCount(0, playwright.LocatorAssertionsToHaveCountOptions{Timeout: playwright.Float(40_000)}))
	must(t, expect.Locator(page.Locator("#alerts-resolved-table tbody tr").Filter(playwright.LocatorFilterOptions{HasText: team})).ToHaveCount(1))
	notReloaded(t, page)
	if !clustertest.Verify {
		return
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if receiver.count("resolved task-waits "+team) != 1 {
			return fmt.Errorf("the receiver does not know that the alert of %s is over", team)
		}
		return nil
	})
	if n := receiver.count("firing task-waits " + team); n != 1 {
		t.Errorf("the receiver got the alert %d times, want once", n)
	}
}

// TestAlertRules makes what six rules look for, all at once, on the real Kueue: each alert
// fires once within 30 seconds, and resolves when its cause ends.
func TestAlertRules(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	console(t)
	noPolicy(t)
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: urgent, weight: 90}, {name: later, weight: 10}]
  alerts:
    rules:
    - {rule: task-waits, after: 5s}
    - {rule: own-quota-waits, after: 2s}
    - {rule: not-admitted, after: 2s}
    - {rule: task-preempted, count: 1}
    - {rule: tasks-fail, count: 1}
    - {rule: quota-idle, after: 2s}
`)
	const shared, lost, own = "ml.trn1.shared", "ml.trn1.lost", "ml.trn1.own"
	for _, instanceType := range []string{shared, lost, own} {
		trainiumNode(t, instanceType)
	}
	lender := makePoolTeam(t, shared, "alert-lender", "accelerators: 8")
	borrower := makePoolTeam(t, shared, "alert-borrower", "accelerators: 8")
	idle := makePoolTeam(t, lost, "alert-idle", "accelerators: 4")
	ranked := makePoolTeam(t, own, "alert-ranked", "accelerators: 8")
	c.Kubectl(t, "", "patch", "computeallocation", lender, "--type=merge", "-p", `{"spec":{"preemption":{"reclaimWithinCohort":"Never","borrowWithinCohort":"Never"}}}`)
	classed := func(team, name, class string, devices int) string {
		return strings.Replace(neuronJob(team, name, devices), "labels: {", "labels: {kueue.x-k8s.io/priority-class: "+class+"-priority, ", 1)
	}
	broken := strings.Replace(neuronJob(idle, "broken", 1), "hyperpod-ns-"+idle+"-localqueue", "broken", 1)

	c.Apply(t, classed(borrower, "borrows", "later", 8))
	c.Apply(t, classed(borrower, "borrows-too", "later", 3))
	c.Apply(t, classed(ranked, "preempted", "later", 8))
	runsSoon(t, borrower, "borrows")
	runsSoon(t, borrower, "borrows-too")
	runsSoon(t, ranked, "preempted")
	c.Apply(t, classed(lender, "waits", "urgent", 8))
	c.Apply(t, classed(ranked, "preempts", "urgent", 8))
	c.Apply(t, `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":{"name":"broken","namespace":"hyperpod-ns-`+idle+`"},"spec":{"clusterQueue":"missing"}}`)
	c.Apply(t, broken)
	c.Apply(t, strings.Replace(neuronJob(borrower, "fails", 1), "parallelism: 1", "activeDeadlineSeconds: 1\n  parallelism: 1", 1))
	began := time.Now()

	admin := user(t, console(t), "admin")
	type alert struct{ Rule, Team, State, Summary string }
	read := func() map[string][]alert {
		var got struct{ Alerts []alert }
		_, body := fetch(t, admin, console(t)+"/alerts.json")
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		found := map[string][]alert{}
		for _, a := range got.Alerts {
			key := a.State + " " + a.Rule + " " + a.Team
			found[key] = append(found[key], a)
		}
		return found
	}
	want := []string{
		"task-waits " + lender, "own-quota-waits " + lender, "not-admitted " + idle, "task-preempted " + ranked, "tasks-fail " + borrower,
		"quota-idle " + idle,
	}
	missing := func(state string) error {
		found := read()
		for _, one := range want {
			if n := len(found[state+" "+one]); n != 1 {
				return fmt.Errorf("%s: %d alerts are %s, want 1; all: %v", one, n, state, found)
			}
		}
		return nil
	}
	// A job fails some time after it is created, so that its cause is later than the others.
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { return missing("firing") })
	t.Logf("all fired %s after the last cause", time.Since(began).Round(time.Second))

	for team, names := range map[string][]string{borrower: {"borrows", "borrows-too", "fails"}, ranked: {"preempted", "preempts"}, idle: {"broken"}} {
		c.Kubectl(t, "", append([]string{"delete", "job", "-n", "hyperpod-ns-" + team}, names...)...)
	}
	c.Apply(t, neuronJob(idle, "works", 1))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { return missing("resolved") })
	for key, list := range read() {
		if strings.HasPrefix(key, "firing") && strings.Contains(strings.Join(want, ";"), strings.TrimPrefix(key, "firing ")) {
			t.Errorf("%s fired again: %v", key, list)
		}
	}
}
