package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOutage stops the API server during a save and while a list of tasks is open: the
// form stays and a retry saves exactly once; the list shows the last known tasks and
// updates afterwards. make verify stops it for a minute.
func TestOutage(t *testing.T) {
	c := clustertest.Get(t)
	console(t)
	team := clustertest.Name("outage")
	deleteTeamAtEnd(t, team)
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 503")
	open(t, page, "/policies/allocations/new")
	fillForm(t, page)
	must(t, page.Locator("#team").Fill(team))
	h100, l4 := poolRow(t, page, "ml.p5.48xlarge"), poolRow(t, page, "ml.g6.12xlarge")
	save := page.Locator("#allocation-form .btn[value=review]")
	list := openList(t)

	c.Without(t, func() {
		must(t, save.Click())
		must(t, expect.Locator(page.Locator("#form-errors")).ToContainText("The cluster cannot be reached"))
		must(t, expect.Locator(page.Locator("#team")).ToHaveValue(team))
		must(t, expect.Locator(page.Locator("#"+h100+"-accelerators")).ToHaveValue("14"))
		must(t, expect.Locator(page.Locator("#"+l4+"-vcpu")).ToHaveValue("24"))
		must(t, expect.Locator(page.Locator("#cluster-status")).ToContainText("does not answer"))
		accessible(t, page, "outage")
		screenshot(t, page, "outage-light")
		// The form still works during the outage.
		must(t, page.Locator("#"+h100+"-accelerators").Fill("4"))
		placeholder(t, page, h100+"-vcpu", "96")
		list.checkOutage(t)
	})
	list.checkUpdate(t)
	review(t, page)
	create := page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"})
	c.Without(t, func() {
		must(t, create.Click())
		must(t, expect.Locator(page.Locator("#form-errors")).ToContainText("The cluster cannot be reached"))
		must(t, expect.Locator(page.Locator("#"+h100+"-accelerators")).ToHaveValue("4"))
	})
	review(t, page)
	must(t, create.Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	var saved v1alpha1.ComputeAllocation
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &saved))
	if quota := saved.Spec.Quota; saved.Generation != 1 || len(quota) != 2 || quota[1].InstanceType != "ml.p5.48xlarge" || *quota[1].Accelerators != 4 {
		t.Errorf("got generation %d with %+v, want generation 1 with 4 accelerators of ml.p5.48xlarge", saved.Generation, quota)
	}
	waitForQueues(t, c, team)
	must(t, expect.Locator(page.Locator("#cluster-status")).Not().ToContainText("does not answer"))
	must(t, expect.Locator(page.Locator("tr", playwright.PageLocatorOptions{HasText: team})).ToContainText("Active"))
}

// watchedList is an open list of the one task of a team.
type watchedList struct {
	playwright.Page
	team string
	rows playwright.Locator
}

func openList(t *testing.T) watchedList {
	t.Helper()
	team := makePoolTeam(t, trainium, "outage-tasks", "accelerators: 0, vCPU: 1")
	clustertest.Get(t).Kubectl(t, neuronJob(team, "lasting-job", 200), "create", "-f", "-")
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 503")
	open(t, page, "/tasks?team="+team)
	list := watchedList{page, team, page.Locator("#tasks-table tbody tr")}
	must(t, expect.Locator(list.rows).ToHaveCount(1))
	markLoaded(t, page)
	return list
}

// checkOutage checks the list, and the pages of its task, while the API server is stopped.
func (l watchedList) checkOutage(t *testing.T) {
	t.Helper()
	must(t, expect.Locator(l.Locator("#cluster-status")).ToContainText("does not answer"))
	if clustertest.Verify {
		time.Sleep(time.Minute)
	}
	must(t, expect.Locator(l.rows).ToHaveCount(1))
	for _, path := range []string{"/tasks?team=" + l.team, "/tasks/hyperpod-ns-" + l.team + "/job/lasting-job", "/tasks.csv?team=" + l.team} {
		if code, body := fetch(t, user(t, console(t), "admin"), console(t)+path); code != http.StatusOK && code != http.StatusServiceUnavailable || code == http.StatusOK && !strings.Contains(body, "lasting-job") {
			t.Errorf("%s: got status %d, want 503, or 200 with the task", path, code)
		}
	}
}

// checkUpdate checks the list once the API server is back.
func (l watchedList) checkUpdate(t *testing.T) {
	t.Helper()
	clustertest.Get(t).Kubectl(t, neuronJob(l.team, "created", 200), "create", "-f", "-")
	must(t, expect.Locator(l.rows).ToHaveCount(2))
	must(t, expect.Locator(l.Locator("#cluster-status")).Not().ToContainText("does not answer"))
	notReloaded(t, l.Page)
}

// TestFormSubmittedTwice submits a form again, as after a lost response: the console
// finds the first save and saves exactly once.
func TestFormSubmittedTwice(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("twice")
	deleteTeamAtEnd(t, team)
	values := filledForm(team)
	for i := range 2 {
		if status, page := post(t, values); status != http.StatusSeeOther {
			t.Fatalf("save %d: got status %d, want 303: %s", i+1, status, page.Find("#form-errors").Text())
		}
	}
	// The same form with other values must not report success, because it saves nothing.
	values.Set("row-0-accelerators", "2")
	if status, page := post(t, values); status != http.StatusUnprocessableEntity || !strings.Contains(errorOf(page, "team"), "your later changes are not saved") {
		t.Errorf("form with other values: got status %d, want 422 with an error of the team: %s", status, page.Find("#form-errors").Text())
	}
	values.Set("row-0-accelerators", "1")
	values.Set("request-id", "another")
	if status, _ := post(t, values); status != http.StatusUnprocessableEntity {
		t.Errorf("another form for the same team: got status %d, want 422", status)
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var saved v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &saved); err != nil {
			return err
		}
		if saved.Generation != 1 {
			return fmt.Errorf("got generation %d, want 1", saved.Generation)
		}
		return nil
	})
}

// TestSaveWithoutResponse checks that the form still works after a save that ends
// without a new page, for example because the user cancels the request.
func TestSaveWithoutResponse(t *testing.T) {
	t.Parallel()
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/new")
	fillForm(t, page)
	must(t, page.Route("**/policies/allocations/new", func(route playwright.Route) {
		if body, err := route.Request().PostData(); err == nil && strings.Contains(body, "action=review") {
			_ = route.Fulfill(playwright.RouteFulfillOptions{Status: playwright.Int(http.StatusNoContent)})
			return
		}
		_ = route.Continue()
	}))
	h100 := poolRow(t, page, "ml.p5.48xlarge")
	save := page.Locator("#allocation-form .btn[value=review]")
	must(t, save.Click())
	must(t, expect.Locator(save).ToHaveAttribute("aria-busy", "true"))
	must(t, page.Locator("#"+h100+"-accelerators").Fill("3"))
	placeholder(t, page, h100+"-vcpu", "72")
	must(t, expect.Locator(save).Not().ToHaveAttribute("aria-busy", "true"))
}
