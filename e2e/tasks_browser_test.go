package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// makePoolTeam creates a team with this quota of an instance type, and waits until its
// queue is active. Tests use instance types of their own, so that they do not compete.
func makePoolTeam(t *testing.T, instanceType, prefix, quota string) (team string) {
	t.Helper()
	c := clustertest.Get(t)
	team = clustertest.Name(prefix)
	deleteTeamAtEnd(t, team)
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: `+instanceType+`, `+quota+`}]
  members: [{kind: Group, name: vision-team}]
`)
	waitForLocalQueue(t, team)
	return team
}

// waitForLocalQueue waits until the queue of a team is active.
func waitForLocalQueue(t *testing.T, team string) {
	t.Helper()
	c := clustertest.Get(t)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "localqueue", "-n", "hyperpod-ns-"+team, "hyperpod-ns-"+team+"-localqueue", "-o", "jsonpath={.status.conditions[?(@.type=='Active')].status}"); err != nil || out != "True" {
			return fmt.Errorf("LocalQueue of %s: got Active %q and error %w, want True", team, out, err)
		}
		return nil
	})
}

// neuronJob returns a Job with one pod that requests Neuron devices, of which the
// sample cluster has sixteen.
func neuronJob(team, name string, devices int) string {
	return strings.NewReplacer("nvidia.com/gpu", "aws.amazon.com/neurondevice", `cpu: "`+fmt.Sprint(devices*8)+`", memory: 8Gi`, "cpu: 1, memory: 1Gi").Replace(jobManifest(team, name, devices))
}

// visitAsAda opens a page in a new browser context that is signed in as a scientist.
func visitAsAda(t *testing.T, options playwright.BrowserNewContextOptions) playwright.Page {
	t.Helper()
	page := visitSignedOut(t, options, "status of 422")
	must(t, page.Context().AddCookies(cookiesOf(t, user(t, console(t), "ada"), console(t))))
	return page
}

// markLoaded sets a variable in the page that a reload deletes.
func markLoaded(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.Evaluate(`() => { window.neverLoadedAgain = true; }`)
	must(t, err)
}

// notReloaded fails the test if the page was loaded again since markLoaded.
func notReloaded(t *testing.T, page playwright.Page) {
	t.Helper()
	if still, err := page.Evaluate(`() => window.neverLoadedAgain === true`); err != nil || still != true {
		t.Errorf("%s: got a reload and error %v, want neither", page.URL(), err)
	}
}

// TestWatchTask submits a task and watches it on open pages: it is pending because of
// another task that the page names, runs once that task is deleted, is preempted when
// another team reclaims its quota, and runs again.
func TestWatchTask(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	own, other := makePoolTeam(t, trainium, "watch", "accelerators: 8"), makePoolTeam(t, trainium, "lends", "accelerators: 8")
	c.Apply(t, neuronJob(own, "holder", 10))

	list := visitAsAda(t, playwright.BrowserNewContextOptions{})
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if status, _ := fetch(t, user(t, console(t), "ada"), console(t)+"/teams/"+own); status != http.StatusOK {
			return fmt.Errorf("page of the team: got status %d, want 200", status)
		}
		return nil
	})
	open(t, list, "/tasks?team="+own+"&team="+other)
	row := func(name string) playwright.Locator {
		return list.Locator("#tasks-table tbody tr").Filter(playwright.LocatorFilterOptions{Has: list.GetByRole("link", playwright.PageGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})})
	}
	must(t, expect.Locator(row("holder")).ToContainText("Running"))
	markLoaded(t, list)

	task := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, task, "/teams/"+own+"/submit")
	must(t, task.Locator("#name").Fill("mine"))
	must(t, task.Locator("#accelerators").Fill("10"))
	must(t, task.Locator("#image").Fill("example.com/train:1"))
	_, err := task.Locator("#class").SelectOption(playwright.SelectOptionValues{Values: &[]string{""}}) // the task ahead of it has the same priority
	must(t, err)
	must(t, task.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
	must(t, expect.Page(task).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+own+"/job/mine$")))
	markLoaded(t, task)
	lead, why, timeline := task.Locator(".task-lead"), task.Locator("#task-why"), task.Locator("#task-timeline")
	must(t, expect.Locator(lead).ToContainText("Pending"))
	must(t, expect.Locator(why).ToContainText("8 Neuron devices short."))
	must(t, expect.Locator(why.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "holder"}).First()).ToHaveAttribute("href", base+"/tasks/hyperpod-ns-"+own+"/job/holder"))
	must(t, expect.Locator(task.Locator("#task-changes")).ToContainText("The end of"))
	must(t, expect.Locator(task.Locator("#checked")).ToHaveAttribute("data-state", "verified", playwright.LocatorAssertionsToHaveAttributeOptions{Timeout: playwright.Float(60_000)}))
	must(t, expect.Locator(row("mine")).ToContainText("Pending"))

	// Foreground deletion deletes its pods first, which frees the devices for the next
	// task.
	c.Kubectl(t, "", "delete", "job", "holder", "--cascade=foreground", "-n", "hyperpod-ns-"+own)
	must(t, expect.Locator(lead).ToContainText("Running"))
	must(t, expect.Locator(task.Locator("#task")).Not().ToContainText("Why"))
	must(t, expect.Locator(row("mine")).ToContainText("Running"))
	must(t, expect.Locator(row("holder")).ToHaveCount(0))

	c.Apply(t, neuronJob(other, "owner", 8))
	must(t, expect.Locator(lead).ToContainText("Preempted"))
	by := timeline.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "owner"})
	must(t, expect.Locator(by.First()).ToHaveAttribute("href", base+"/tasks/hyperpod-ns-"+other+"/job/owner"))
	must(t, expect.Locator(timeline).ToContainText("another team reclaims its own quota"))
	must(t, expect.Locator(why).ToContainText("2 Neuron devices short."))
	must(t, expect.Locator(why).ToContainText("8 Neuron devices, all free."))
	must(t, expect.Locator(why).ToContainText("There is no idle quota to borrow."))
	must(t, expect.Locator(row("mine")).ToContainText("Preempted"))
	must(t, expect.Locator(row("owner")).ToContainText("Running"))
	accessible(t, task, "task-preempted")
	screenshot(t, task, "task-preempted-light")

	c.Kubectl(t, "", "delete", "job", "owner", "--cascade=foreground", "-n", "hyperpod-ns-"+other)
	must(t, expect.Locator(lead).ToContainText("Running"))
	must(t, expect.Locator(row("mine")).ToContainText("Running"))
	must(t, expect.Locator(row("mine").Locator("td").Last()).ToHaveText("1"))
	notReloaded(t, list)
	notReloaded(t, task)
}
