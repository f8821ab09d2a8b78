package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// deleteTeamAtEnd deletes a team's allocation and tasks when the test ends. It waits for
// elastic jobs, since the console loses its permissions for their parts with the team.
func deleteTeamAtEnd(t testing.TB, team string) {
	c := clustertest.Get(t)
	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "jobs", "--all", "-n", "hyperpod-ns-"+team, "--wait=false")
		_, _ = c.TryKubectl("", "delete", "elasticjobs", "--all", "-n", "hyperpod-ns-"+team, "--timeout=20s")
		_ = c.Client.Delete(context.Background(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	})
}

// review submits a filled form for review and waits until the review is visible.
func review(t testing.TB, page playwright.Page) {
	t.Helper()
	must(t, page.Locator("#allocation-form .btn[value=review]").Click())
	must(t, expect.Locator(page.Locator("#review-form")).ToBeVisible())
}

// poolRow returns the id of the row of a pool in the form of an allocation, such as row-2.
func poolRow(t testing.TB, page playwright.Page, pool string) string {
	t.Helper()
	id, err := page.Locator(`.row:has(input[value="` + pool + `"])`).GetAttribute("id")
	must(t, err)
	return id
}

// openMore opens More settings in the form of an allocation.
func openMore(t testing.TB, page playwright.Page) {
	t.Helper()
	must(t, expect.Locator(page.Locator("#more-settings")).ToBeVisible())
	open, err := page.Locator("#more-settings[open]").Count()
	must(t, err)
	if open == 0 {
		must(t, page.Locator("#more-settings > summary").Click())
	}
}

// placeholder waits until an input has a placeholder.
func placeholder(t testing.TB, page playwright.Page, input, want string) {
	t.Helper()
	must(t, expect.Locator(page.Locator("#"+input)).ToHaveAttribute("placeholder", want))
}

// TestCreateAllocationAndRunTask creates an allocation as an admin, from an empty form,
// and runs tasks in it as a scientist.
func TestCreateAllocationAndRunTask(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("vision")
	deleteTeamAtEnd(t, team)

	admin := visit(t, playwright.BrowserNewContextOptions{})
	open(t, admin, "/")
	must(t, admin.GetByLabel("Main").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Policies"}).Click())
	// What is typed before the script of the page arrives counts.
	typed := make(chan struct{})
	must(t, admin.Route(regexp.MustCompile(`/js/kuota.*\.js`), func(script playwright.Route) {
		<-typed
		_ = script.Continue()
	}))
	must(t, admin.GetByRole("link", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Create .*allocation")}).First().Click())
	must(t, admin.Locator("#team").Fill(team))
	close(typed)
	must(t, expect.Locator(admin.Locator("#team-hint")).ToContainText("hyperpod-ns-"+team))
	row := poolRow(t, admin, "ml.p5.48xlarge")
	must(t, expect.Locator(admin.Locator("#"+row)).ToContainText("H100"))
	must(t, expect.Locator(admin.Locator("#"+row+"-there")).ToContainText("16 GPUs"))
	must(t, admin.Locator("#"+row+"-accelerators").PressSequentially("2"))
	must(t, expect.Locator(admin.Locator("#"+row+"-rest summary")).ToHaveText("48 vCPU · 512 GiB"))

	// Override one default, check the values derived from it, and reset it.
	must(t, admin.Locator("#"+row+"-rest summary").Click())
	must(t, admin.Locator("#"+row+"-vcpu").PressSequentially("96"))
	placeholder(t, admin, row+"-memory", "1024")
	must(t, admin.GetByRole("button", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Reset")}).Click())
	must(t, expect.Locator(admin.Locator("#"+row+"-vcpu")).ToHaveValue(""))
	placeholder(t, admin, row+"-vcpu", "48")
	placeholder(t, admin, row+"-memory", "512")

	// A complete review needs Kueue, and an earlier test may have restarted it.
	c.Kubectl(t, "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: "+team+"}}", "create", "--dry-run=server", "-f", "-")

	must(t, admin.Locator("#borrow-percent").Fill("50"))
	must(t, expect.Locator(admin.Locator("#"+row)).ToContainText("1 GPU · 24 vCPU · 256 GiB"))
	review(t, admin)
	must(t, expect.Locator(admin.Locator("#review-quota")).ToContainText("ml.p5.48xlarge"))
	must(t, expect.Locator(admin.Locator("#review-objects")).ToContainText("objects"))
	must(t, admin.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
	must(t, expect.Page(admin).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	listed := admin.Locator("tr", playwright.PageLocatorOptions{HasText: team})
	must(t, expect.Locator(listed).ToContainText("Active"))
	must(t, expect.Locator(listed).ToContainText("2 GPUs · 48 vCPU · 512 GiB"))
	waitForQueues(t, c, team)

	scientist := visit(t, playwright.BrowserNewContextOptions{})
	open(t, scientist, "/tasks")
	c.Apply(t, jobManifest(team, "fits", 2))
	task := func(name string) playwright.Locator {
		return scientist.Locator("tr", playwright.PageLocatorOptions{HasText: team}).Filter(playwright.LocatorFilterOptions{HasText: name})
	}
	must(t, expect.Locator(task("fits")).ToContainText("Running"))
	must(t, expect.Locator(task("fits")).ToContainText("2 GPUs"))
	must(t, expect.Locator(task("fits")).ToContainText("ml.p5.48xlarge"))
	c.Apply(t, jobManifest(team, "too-many", 4))
	must(t, expect.Locator(task("too-many")).ToContainText("Pending"))
	must(t, expect.Locator(task("too-many").Locator(".reason")).ToHaveText(regexp.MustCompile(`GPUs? short\.|can never have that much\.`)))

	// Kueue's reason is on the task's page, as Kueue wrote it.
	must(t, task("too-many").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "too-many"}).Click())
	var workloads kueue.WorkloadList
	must(t, c.Client.List(t.Context(), &workloads, client.InNamespace("hyperpod-ns-"+team)))
	for _, w := range workloads.Items {
		if reason := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); reason != nil && reason.Status == metav1.ConditionFalse {
			must(t, expect.Locator(scientist.Locator("#task-said")).ToContainText(reason.Message))
		}
	}
}

// controls returns how many controls of a form are in view, and the bottom of its last button in
// pixels. A row is one control, and so is a group of radio buttons.
func controls(t testing.TB, page playwright.Page, form string) (n, bottom int) {
	t.Helper()
	counted, err := page.Evaluate(`(form) => {
		const shown = (e) => e.checkVisibility({ contentVisibilityAuto: true }) && e.closest("details:not([open])") === null && !e.matches("[type=hidden], .visually-hidden");
		const names = [...document.querySelectorAll(form + " :is(input, select, textarea)")].filter(shown).map((e) => e.closest(".row, .policy-row")?.id ?? e.name);
		const buttons = [...document.querySelectorAll(form + " :is(.btn, summary)")].filter((e) => e.checkVisibility() && !e.closest(".row"));
		const bottom = (e) => e.getBoundingClientRect().bottom;
		return [new Set(names).size, Math.max(...buttons.map(bottom))].map(Math.round);
	}`, form)
	must(t, err)
	_, err = fmt.Sscanf(fmt.Sprint(counted), "[%d %d]", &n, &bottom)
	must(t, err)
	return n, bottom
}

// TestTwoGPUs gives a team two GPUs: few controls, all in view, and one button saves.
func TestTwoGPUs(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("simple")
	deleteTeamAtEnd(t, team)
	page := visit(t, playwright.BrowserNewContextOptions{Viewport: &playwright.Size{Width: 1280, Height: 900}})
	open(t, page, "/policies/allocations/new")
	controls, bottom := controls(t, page, "#allocation-form")
	if controls > 12 || bottom > 900 {
		t.Errorf("got %d controls and the last button at %d px, want at most 12, within 900 px", controls, bottom)
	}

	row := poolRow(t, page, "ml.p5.48xlarge")
	must(t, page.Locator("#team").Fill(team))
	must(t, page.Locator("#member-0-name").Fill("vision-team"))
	must(t, page.Locator("#"+row+"-accelerators").Fill("2"))
	must(t, expect.Locator(page.Locator("#effect .preview-summary, #effect .remark")).ToBeVisible()) // tasks of other tests may start
	save, changed := page.Locator("#allocation-form .btn-primary"), page.GetByText("Nothing is saved: what saving does has changed")
	must(t, save.Click())
	confirm := button(page, "Create allocation")
	for range 5 { // other tests change the policy and pools
		must(t, expect.Locator(page.Locator("#review-form, #allocations").Or(changed)).ToBeVisible())
		if again, err := changed.Count(); err != nil || again == 0 {
			break
		}
		must(t, save.Click())
	}
	must(t, expect.Locator(page.Locator("#review-form, #allocations")).ToBeVisible())
	if asked, err := page.Locator("#review-form").Count(); err == nil && asked > 0 { // the simulation took too long beside other tests
		must(t, expect.Locator(page.Locator("main")).ToContainText("Effects on running tasks are not known"))
		must(t, confirm.Click())
	}
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	waitForQueues(t, c, team)
	if y, err := page.Evaluate(`() => scrollY`); err != nil || fmt.Sprint(y) != "0" {
		t.Errorf("got a page scrolled to %v and error %v, want none", y, err)
	}
}

// waitForQueues waits until the team's queues and the flavor ml.p5.48xlarge exist and the
// queues are active.
func waitForQueues(t testing.TB, c *clustertest.Cluster, team string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return err
		}
		var local kueue.LocalQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "hyperpod-ns-" + team, Name: "hyperpod-ns-" + team + "-localqueue"}, &local); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(queue.Status.Conditions, kueue.ClusterQueueActive) || !meta.IsStatusConditionTrue(local.Status.Conditions, kueue.LocalQueueActive) {
			return fmt.Errorf("got conditions %v and %v, want active queues", queue.Status.Conditions, local.Status.Conditions)
		}
		return nil
	})
}

// TestCreateAllocationWithoutJavaScript creates an allocation without JavaScript, where
// each step is a button.
func TestCreateAllocationWithoutJavaScript(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("plain")
	deleteTeamAtEnd(t, team)
	page := visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(false)})
	press := func(name string) {
		t.Helper()
		must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: name}).Last().Click())
	}
	open(t, page, "/policies/allocations/new")
	must(t, page.Locator("#team").Fill(team))
	row := poolRow(t, page, "ml.p5.48xlarge")
	must(t, page.Locator("#"+row+"-accelerators").Fill("2"))
	press("Fill in the rest")
	placeholder(t, page, row+"-vcpu", "48")
	placeholder(t, page, row+"-memory", "512")
	must(t, page.Locator("#"+row+"-rest summary").Click())
	must(t, page.Locator("#"+row+"-vcpu").Fill("96"))
	press("Fill in the rest")
	placeholder(t, page, row+"-memory", "1024")
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Reset")}).Click())
	must(t, expect.Locator(page.Locator("#"+row+"-vcpu")).ToHaveValue(""))
	press("Add another type")
	other := page.Locator("input[list=instance-types]")
	must(t, other.Fill("ml.p4d.24xlarge"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Remove row")}).Click())
	must(t, expect.Locator(other).ToHaveCount(0))
	must(t, expect.Locator(page.Locator("#team")).ToHaveValue(team))
	press("Review")
	must(t, expect.Locator(page.Locator("#review-form")).ToBeVisible())
	press("Back to the form")
	must(t, expect.Locator(page.Locator("#team")).ToHaveValue(team))
	press("Review")
	press("Create allocation")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	waitForQueues(t, c, team)
	rowContains := func(path, want string) {
		t.Helper()
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
			open(t, page, path)
			text, err := page.Locator("tr", playwright.PageLocatorOptions{HasText: team}).First().TextContent(playwright.LocatorTextContentOptions{Timeout: playwright.Float(1000)})
			if err != nil || !strings.Contains(text, want) {
				return fmt.Errorf("%s: got row %q and error %w, want %q", path, text, err, want)
			}
			return nil
		})
	}
	rowContains("/policies?q="+team, "2 GPUs · 48 vCPU · 512 GiB")
	c.Apply(t, jobManifest(team, "fits", 1))
	rowContains("/tasks", "Running")
}
