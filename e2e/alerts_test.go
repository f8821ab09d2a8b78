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
// within 30 seconds on the page of its member and at the receiver, is silenced, and
// resolves when the task ends.
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
	clustertest.Eventually(t, 60*time.Second, func(context.Context) error {
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
	clustertest.Eventually(t, 90*time.Second, func(context.Context) error {
		if receiver.count("resolved task-waits "+team) != 1 {
			return fmt.Errorf("the receiver does not know that the alert of %s is over", team)
		}
		return nil
	})
	if n := receiver.count("firing task-waits " + team); n != 1 {
		t.Errorf("the receiver got the alert %d times, want once", n)
	}
}
