package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// shop is a team of the tests of tasks, with a quota that no other test uses.
func shop(t *testing.T, instanceType, start, quota string) (team string) {
	t.Helper()
	c := clustertest.Get(t)
	team = clustertest.Name(start)
	removed(t, team)
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: `+instanceType+`, `+quota+`}]
  members: [{kind: Group, name: vision-team}]
`)
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "localqueue", "-n", "hyperpod-ns-"+team, "hyperpod-ns-"+team+"-localqueue", "-o", "jsonpath={.status.conditions[?(@.type=='Active')].status}"); err != nil || out != "True" {
			return fmt.Errorf("the queue of %s is active: %s, %w", team, out, err)
		}
		return nil
	})
	return team
}

// neuronJob is a Job with one pod that asks for Neuron devices, of which the
// cluster has sixteen.
func neuronJob(team, name string, devices int) string {
	return strings.NewReplacer("nvidia.com/gpu", "aws.amazon.com/neurondevice", `cpu: "`+fmt.Sprint(devices*8)+`", memory: 8Gi`, "cpu: 1, memory: 1Gi").Replace(jobManifest(team, name, devices))
}

// ada opens a page as a scientist.
func ada(t *testing.T, options playwright.BrowserNewContextOptions) playwright.Page {
	t.Helper()
	page := visitAsNobody(t, options, "status of 422")
	must(t, page.Context().AddCookies(cookiesOf(t, person(t, console(t), "ada"), console(t))))
	return page
}

// mark leaves a mark in a page that a reload would take away.
func leaveMark(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.Evaluate(`() => { window.neverLoadedAgain = true; }`)
	must(t, err)
}

// neverLoaded fails the test when a page was loaded since it was marked.
func neverLoaded(t *testing.T, page playwright.Page) {
	t.Helper()
	if still, err := page.Evaluate(`() => window.neverLoadedAgain === true`); err != nil || still != true {
		t.Errorf("%s was loaded anew: %v", page.URL(), err)
	}
}

// A scientist submits a task and watches it on pages that stay open: it waits
// for a task that is named, runs once that ends, is preempted by a task of
// another team that takes back its quota, and runs again.
func TestScientistWatchesATask(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	own, other := shop(t, trainium, "watch", "accelerators: 8"), shop(t, trainium, "lends", "accelerators: 8")
	c.Apply(t, neuronJob(own, "holder", 10))

	list := ada(t, playwright.BrowserNewContextOptions{})
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error { // until RBAC lets the member in
		if status, _ := fetch(t, person(t, console(t), "ada"), console(t)+"/teams/"+own); status != http.StatusOK {
			return fmt.Errorf("the team's page answers %d", status)
		}
		return nil
	})
	open(t, list, "/tasks?team="+own+"&team="+other)
	row := func(name string) playwright.Locator {
		return list.Locator("#tasks-table tbody tr").Filter(playwright.LocatorFilterOptions{Has: list.GetByRole("link", playwright.PageGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})})
	}
	must(t, see.Locator(row("holder")).ToContainText("Running"))
	leaveMark(t, list)

	task := ada(t, playwright.BrowserNewContextOptions{})
	open(t, task, "/teams/"+own)
	must(t, task.Locator("#name").Fill("mine"))
	must(t, task.Locator("#accelerators").Fill("10"))
	must(t, task.Locator("#image").Fill("example.com/train:1"))
	_, err := task.Locator("#class").SelectOption(playwright.SelectOptionValues{Values: &[]string{""}}) // what it stands behind is as low
	must(t, err)
	must(t, task.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
	must(t, see.Page(task).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+own+"/job/mine$")))
	leaveMark(t, task)
	lead, why, timeline := task.Locator(".task-lead"), task.Locator("#task-why"), task.Locator("#task-timeline")
	must(t, see.Locator(lead).ToContainText("Pending"))
	must(t, see.Locator(why).ToContainText("8 Neuron devices short."))
	must(t, see.Locator(why.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "holder"}).First()).ToHaveAttribute("href", "/tasks/hyperpod-ns-"+own+"/job/holder"))
	must(t, see.Locator(task.Locator("#task-changes")).ToContainText("finishes"))
	must(t, see.Locator(row("mine")).ToContainText("Pending"))

	// Its pods go first, so that there is room for the next ones.
	c.Kubectl(t, "", "delete", "job", "holder", "--cascade=foreground", "-n", "hyperpod-ns-"+own)
	must(t, see.Locator(lead).ToContainText("Running"))
	must(t, see.Locator(task.Locator("#task")).Not().ToContainText("Why"))
	must(t, see.Locator(row("mine")).ToContainText("Running"))
	must(t, see.Locator(row("holder")).ToHaveCount(0))

	c.Apply(t, neuronJob(other, "owner", 8))
	must(t, see.Locator(lead).ToContainText("Preempted"))
	by := timeline.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "owner"})
	must(t, see.Locator(by.First()).ToHaveAttribute("href", "/tasks/hyperpod-ns-"+other+"/job/owner"))
	must(t, see.Locator(timeline).ToContainText("another team reclaims its own quota"))
	must(t, see.Locator(why).ToContainText("2 Neuron devices short."))
	must(t, see.Locator(why).ToContainText("8 Neuron devices, all free."))
	must(t, see.Locator(why).ToContainText("There is no idle quota to borrow."))
	must(t, see.Locator(row("mine")).ToContainText("Preempted"))
	must(t, see.Locator(row("owner")).ToContainText("Running"))
	accessible(t, task, "task-preempted")
	picture(t, task, "task-preempted-light")

	c.Kubectl(t, "", "delete", "job", "owner", "--cascade=foreground", "-n", "hyperpod-ns-"+other)
	must(t, see.Locator(lead).ToContainText("Running"))
	must(t, see.Locator(row("mine")).ToContainText("Running"))
	must(t, see.Locator(row("mine").Locator("td").Last()).ToHaveText("1"))
	neverLoaded(t, list)
	neverLoaded(t, task)
}
