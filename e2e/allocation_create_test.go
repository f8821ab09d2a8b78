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
	must(t, page.Locator("#allocation-form .btn-primary").Click())
	must(t, expect.Locator(page.Locator("#review-form")).ToBeVisible())
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
	must(t, admin.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Policies", Exact: playwright.Bool(true)}).Click())
	must(t, admin.GetByRole("link", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Create .*allocation")}).First().Click())
	must(t, admin.Locator("#team").Fill(team))
	must(t, expect.Locator(admin.Locator("#team-hint")).ToContainText("hyperpod-ns-"+team))
	must(t, admin.Locator("#row-0-type").Fill("ml.p5.48xlarge"))
	must(t, expect.Locator(admin.Locator("#row-0-there")).ToContainText("16 GPUs (H100)"))
	must(t, admin.Locator("#row-0-accelerators").PressSequentially("2"))
	placeholder(t, admin, "row-0-vcpu", "48")
	placeholder(t, admin, "row-0-memory", "512")

	// Override one default, check the values derived from it, and reset it.
	must(t, admin.Locator("#row-0-vcpu").PressSequentially("96"))
	placeholder(t, admin, "row-0-memory", "1024")
	must(t, admin.GetByRole("button", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Reset")}).Click())
	must(t, expect.Locator(admin.Locator("#row-0-vcpu")).ToHaveValue(""))
	placeholder(t, admin, "row-0-vcpu", "48")
	placeholder(t, admin, "row-0-memory", "512")

	// A complete review needs Kueue, and an earlier test may have restarted it.
	c.Kubectl(t, "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: "+team+"}}", "create", "--dry-run=server", "-f", "-")

	must(t, admin.Locator("#strategy-LendAndBorrow").Check())
	must(t, admin.Locator("#borrow-percent").Fill("50"))
	must(t, expect.Locator(admin.Locator("#row-0")).ToContainText("1 GPU · 24 vCPU · 256 GiB"))
	review(t, admin)
	must(t, expect.Locator(admin.Locator("#review-quota")).ToContainText("ml.p5.48xlarge"))
	must(t, expect.Locator(admin.Locator("#review-objects")).ToContainText("objects"))
	must(t, admin.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
	must(t, expect.Page(admin).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	row := admin.Locator("tr", playwright.PageLocatorOptions{HasText: team})
	must(t, expect.Locator(row).ToContainText("Active"))
	must(t, expect.Locator(row).ToContainText("2 GPUs · 48 vCPU · 512 GiB"))
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
	must(t, page.Locator("#row-0-type").Fill("ml.p5.48xlarge"))
	must(t, page.Locator("#row-0-accelerators").Fill("2"))
	press("Fill in the rest")
	placeholder(t, page, "row-0-vcpu", "48")
	placeholder(t, page, "row-0-memory", "512")
	must(t, page.Locator("#row-0-vcpu").Fill("96"))
	press("Fill in the rest")
	placeholder(t, page, "row-0-memory", "1024")
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: regexp.MustCompile("Reset")}).Click())
	must(t, expect.Locator(page.Locator("#row-0-vcpu")).ToHaveValue(""))
	press("Add instance type")
	must(t, page.Locator("#row-1-type").Fill("ml.g5.2xlarge"))
	press("Remove row 2")
	must(t, expect.Locator(page.Locator("#row-1")).ToHaveCount(0))
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
	rowContains("/policies", "2 GPUs · 48 vCPU · 512 GiB")
	c.Apply(t, jobManifest(team, "fits", 1))
	rowContains("/tasks", "Running")
}
