package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// makeTeam creates a team with a quota of GPUs, and waits until its queues are active.
func makeTeam(t *testing.T, prefix string, gpus int64) string {
	t.Helper()
	c := clustertest.Get(t)
	console(t)
	team := clustertest.Name(prefix)
	deleteTeamAtEnd(t, team)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}},
	}))
	waitForQueues(t, c, team)
	return team
}

// changeWeight changes a team's fair-share weight, like a concurrent edit by another
// admin.
func changeWeight(t *testing.T, team string) {
	t.Helper()
	c := clustertest.Get(t)
	weight := time.Now().UnixNano()%50 + 1
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"displayName":"%d","fairShareWeight":%d}}`, time.Now().UnixNano(), weight))
}

func button(page playwright.Page, name string) playwright.Locator {
	return page.GetByRole("button", playwright.PageGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})
}

// TestEditAllocation edits an allocation as an admin: the review shows the effects,
// and Kueue has the new values after the save.
func TestEditAllocation(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeTeam(t, "edited", 4)
	c.Apply(t, jobManifest(team, "busy", 4))
	waitForUsage(t, team, "4")

	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies?q="+team)
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: team, Exact: playwright.Bool(true)}).Click())
	must(t, expect.Locator(page.Locator("#detail-quota")).ToContainText("ml.p5.48xlarge"))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Edit", Exact: playwright.Bool(true)}).Click())
	must(t, page.Locator("#row-0-accelerators").Fill("2"))
	openMore(t, page)
	must(t, page.Locator("#weight").Fill("21"))
	must(t, page.Locator("#add-limit").Click())
	must(t, page.Locator("#limit-0-type").Fill("ml.g5.2xlarge"))
	must(t, page.Locator("#limit-0-accelerators").Fill("1"))
	must(t, expect.Locator(page.Locator("#limit-0")).ToContainText("can only borrow"))
	keepsStillWhilePressed(t, page)
	review(t, page)
	must(t, expect.Locator(page.Locator(`#preview tr[data-team="`+team+`"][data-resource="nvidia.com/gpu"] [data-figure=borrowed]`)).ToHaveAttribute("data-after", "2"))
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("20"))
	must(t, button(page, "Save changes").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(team+`\?saved=`)))
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return err
		}
		flavors := queue.Spec.ResourceGroups[0].Flavors
		if len(flavors) != 2 || flavors[1].Name != "ml.g5.2xlarge" || queue.Spec.FairSharing == nil || queue.Spec.FairSharing.Weight.String() != "20" {
			return fmt.Errorf("ClusterQueue: got %+v, want flavor ml.g5.2xlarge and weight 20", queue.Spec)
		}
		return nil
	})
	must(t, expect.Locator(page.Locator("#detail-status")).ToContainText("Active"))
}

// keepsStillWhilePressed checks that a form does not change while a mouse button is down:
// a button that moves away between press and release is not clicked.
func keepsStillWhilePressed(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.Evaluate(`() => addEventListener("pointerdown", () => {
		document.getElementById("allocation-form").dataset.unmerged = "";
		globalThis.pressedAt = performance.now();
	}, { once: true })`)
	must(t, err)
	must(t, page.Locator("h1").Hover())
	must(t, page.Mouse().Down())
	_, err = page.ExpectRequestFinished(func() error { return page.Locator("#weight").Fill("20") })
	must(t, err)
	still, err := page.Evaluate(`async () => {
		for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
		return "unmerged" in document.getElementById("allocation-form").dataset || performance.now() - pressedAt > 3000;
	}`)
	must(t, err)
	if still != true {
		t.Error("the form changed while a mouse button was down")
	}
	must(t, page.Mouse().Up())
	must(t, expect.Locator(page.Locator("#allocation-form[data-unmerged]")).ToHaveCount(0))
}

// waitForUsage waits until the team's tasks have reserved this many GPUs.
func waitForUsage(t *testing.T, team, gpus string) {
	t.Helper()
	c := clustertest.Get(t)
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return err
		}
		for _, flavor := range queue.Status.FlavorsReservation {
			for _, r := range flavor.Resources {
				if r.Name == "nvidia.com/gpu" && r.Total.String() == gpus {
					return nil
				}
			}
		}
		return fmt.Errorf("reservation: got %+v, want %s GPUs", queue.Status.FlavorsReservation, gpus)
	})
}

// TestConcurrentEdits saves a form after another admin has changed the allocation:
// neither change is overwritten silently, and the form keeps what was typed.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeTeam(t, "shared", 1)
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 409")
	open(t, page, "/policies/allocations/"+team+"/edit")
	openMore(t, page)
	must(t, page.Locator("#description").Fill("mine"))
	must(t, page.Locator("#weight").Fill("77"))
	review(t, page)
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"fairShareWeight":11}}`)
	must(t, button(page, "Save changes").Click())
	must(t, expect.Locator(page.Locator("#conflict tr", playwright.PageLocatorOptions{HasText: "Fair-share weight"})).ToContainText("11"))
	must(t, button(page, "Keep mine").Click())
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("77"))
	must(t, button(page, "Save changes").Click())
	must(t, expect.Locator(page.Locator("#detail-settings")).ToContainText("77"))
	must(t, expect.Locator(page.Locator(".page-head")).ToContainText("mine"))
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"description":"theirs","activation":"Hold"}}`)
	must(t, expect.Locator(page.Locator(".page-head")).ToContainText("theirs"))
	must(t, expect.Locator(page.Locator(".page-head a", playwright.PageLocatorOptions{HasText: "Resume the queue"})).ToBeVisible())
}

// TestCreatePoolWithAllocation types an accelerator instead of an instance type. The
// save creates a pool with the allocation, but needs a cluster policy for it.
func TestCreatePoolWithAllocation(t *testing.T) {
	c := clustertest.Get(t)
	team := clustertest.Name("pooled")
	deleteTeamAtEnd(t, team)
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 422")
	noPolicy(t)
	open(t, page, "/policies/allocations/new")
	must(t, page.Locator("#team").Fill(team))
	must(t, button(page, "Add another type").Click())
	must(t, page.Locator("input[list=instance-types]").Fill("Trainium1"))
	must(t, button(page, "Create pool trainium1 of all Trainium1 nodes").Click())
	must(t, expect.Locator(page.Locator("input[list=instance-types]")).ToHaveValue("trainium1"))
	row := poolRow(t, page, "trainium1")
	must(t, page.Locator("#"+row+"-accelerators").Fill("4"))
	placeholder(t, page, row+"-vcpu", "32")
	must(t, page.Locator("#allocation-form .btn[value=review]").Click())
	must(t, expect.Locator(page.Locator("#allocation-form .row-notes .error")).ToContainText("there is no cluster policy yet"))
	c.Apply(t, samplePolicy)
	var policy v1alpha1.ClusterPolicy
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { // the policy restarts Kueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionFairShare) {
			return fmt.Errorf("policy status: got %+v, want FairShare True", policy.Status)
		}
		return nil
	})
	review(t, page)
	must(t, expect.Locator(page.Locator("#review-quota")).ToContainText("Creates the pool trainium1"))
	must(t, button(page, "Create allocation").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?created=`)))
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy))
	if pools := policy.Spec.Pools; len(pools) == 0 || pools[len(pools)-1].Name != "trainium1" || pools[len(pools)-1].Match.Accelerator != "Trainium1" {
		t.Errorf("pools of the policy: got %+v, want trainium1 last", pools)
	}
}

// TestDeleteAllocation holds a team with a running task, and then drains and deletes
// it after the admin has typed its name.
func TestDeleteAllocation(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeTeam(t, "deleted", 2)
	c.Apply(t, jobManifest(team, "busy", 2))
	waitForUsage(t, team, "2")
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 422")
	path := "/policies/allocations/" + team + "/delete"
	open(t, page, path)
	must(t, expect.Locator(page.Locator("#delete-tasks")).ToContainText("busy"))
	must(t, button(page, "Hold the queue").Click())
	must(t, expect.Locator(page.Locator("#detail-status")).ToContainText("Held"))
	open(t, page, path)
	must(t, page.Locator("#confirm").Fill("something else"))
	must(t, button(page, "Stop 1 task and delete "+team).Click())
	must(t, expect.Locator(page.Locator("#confirm-error")).ToContainText("to the letter"))
	must(t, page.Locator("#confirm").Fill(team))
	must(t, button(page, "Stop 1 task and delete "+team).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?deleted=`)))
	must(t, expect.Locator(page.Locator(".notice")).ToContainText("Its namespace stays"))
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get the deleted allocation: got %w, want not found", err)
		}
		return nil
	})
	c.Kubectl(t, "", "get", "job", "busy", "-n", "hyperpod-ns-"+team)
}
