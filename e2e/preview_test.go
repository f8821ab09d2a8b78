package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"github.com/playwright-community/playwright-go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// makeSeparateTeam creates a team whose queue neither borrows nor lends, so that other
// tests do not affect its tasks.
func makeSeparateTeam(t *testing.T, prefix string, gpus int64) string {
	t.Helper()
	c := clustertest.Get(t)
	console(t)
	team := clustertest.Name(prefix)
	deleteTeamAtEnd(t, team)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		Spec: v1alpha1.ComputeAllocationSpec{
			Sharing: v1alpha1.Sharing{Strategy: v1alpha1.DontLend},
			Quota:   []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &gpus}}},
		},
	}))
	waitForQueues(t, c, team)
	return team
}

// previewed waits for a preview, and returns the effects on tasks of a team that it
// shows, such as "started a-task". Those of other tests' teams may start at any time. As a person
// would, it asks again if the simulation took too long, while other tests need the cores.
func previewed(t *testing.T, page playwright.Page, team, variant string) (effects []string) {
	t.Helper()
	ready, late := page.Locator(`#preview [data-variant="`+variant+`"][data-state=ready]`), page.Locator(`#preview [data-state=unverified]`)
	for range 3 {
		must(t, expect.Locator(ready.Or(late).First()).ToBeVisible())
		if text, err := page.Locator("#preview").InnerText(); err != nil || !strings.Contains(text, "took too long") {
			break
		}
		must(t, page.Locator("#preview").GetByText("Preview again").Click())
	}
	must(t, expect.Locator(ready).ToBeVisible())
	rows, err := page.Locator(`#preview [data-variant="` + variant + `"] tr[data-task][data-team="` + team + `"]`).All()
	must(t, err)
	for _, row := range rows {
		effect, err := row.GetAttribute("data-effect")
		must(t, err)
		name, err := row.Locator("th").InnerText()
		must(t, err)
		effects = append(effects, effect+" "+name)
	}
	slices.Sort(effects)
	return effects
}

// admittedJobs waits until exactly these jobs of a team have quota.
func admittedJobs(t *testing.T, team string, want ...string) {
	t.Helper()
	c := clustertest.Get(t)
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var list kueue.WorkloadList
		if err := c.Client.List(ctx, &list, client.InNamespace("hyperpod-ns-"+team)); err != nil {
			return err
		}
		var got []string
		for i := range list.Items {
			w := &list.Items[i]
			if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) && len(w.OwnerReferences) == 1 {
				got = append(got, w.OwnerReferences[0].Name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("quota is reserved for %q, want %q", got, want)
		}
		return nil
	})
}

// TestPreview previews more quota, a drained queue and its deletion, and makes each
// change: what the page said happens.
func TestPreview(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeSeparateTeam(t, "previewed", 4)
	c.Apply(t, jobManifest(team, "busy", 4))
	waitForUsage(t, team, "4")
	c.Apply(t, jobManifest(team, "next", 4))
	c.Apply(t, jobManifest(team, "large", 16))
	admittedJobs(t, team, "busy")

	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/"+team+"/edit")
	must(t, page.Locator("#row-0-accelerators").Fill("8"))
	review(t, page)
	if diff := cmp.Diff([]string{"started next"}, previewed(t, page, team, "save")); diff != "" {
		t.Fatalf("more quota: the preview differs (-want +got):\n%s", diff)
	}
	row := page.Locator(`#preview tr[data-team="` + team + `"][data-resource="nvidia.com/gpu"]`)
	for figure, want := range map[string][2]string{"allocated": {"4", "8"}, "used": {"4", "8"}, "borrowed": {"0", "0"}} {
		cell := row.Locator(`[data-figure="` + figure + `"]`)
		must(t, expect.Locator(cell).ToHaveAttribute("data-before", want[0]))
		must(t, expect.Locator(cell).ToHaveAttribute("data-after", want[1]))
	}
	must(t, page.Locator("#preview summary").Click())
	must(t, expect.Locator(page.Locator("#preview ins.yaml-line").First()).ToBeVisible())
	checkAppearance(t, page, "preview")
	must(t, button(page, "Save changes").Click())
	admittedJobs(t, team, "busy", "next")

	open(t, page, "/policies/allocations/"+team+"/hold")
	if effects := previewed(t, page, team, "hold"); effects != nil {
		t.Errorf("hold: the preview shows %q", effects)
	}
	if diff := cmp.Diff([]string{"evicted busy", "evicted next"}, previewed(t, page, team, "drain")); diff != "" {
		t.Errorf("drain: the preview differs (-want +got):\n%s", diff)
	}
	must(t, page.Locator("#choice-Drain").Check())
	must(t, page.Locator("#confirm").Fill(team))
	must(t, button(page, "Hold the queue").Click())
	admittedJobs(t, team)
	open(t, page, "/tasks?team="+team)
	for _, task := range []string{"busy", "next"} { // until the console knows, too
		must(t, expect.Locator(page.Locator("tr", playwright.PageLocatorOptions{HasText: task})).ToContainText("Pending"))
	}

	open(t, page, "/policies/allocations/"+team+"/resume")
	if diff := cmp.Diff([]string{"started busy", "started next"}, previewed(t, page, team, "resume")); diff != "" {
		t.Errorf("resume: the preview differs (-want +got):\n%s", diff)
	}
	must(t, button(page, "Resume the queue").Click())
	admittedJobs(t, team, "busy", "next")

	open(t, page, "/policies/allocations/"+team+"/delete")
	if diff := cmp.Diff([]string{"evicted busy", "evicted next"}, previewed(t, page, team, "delete")); diff != "" {
		t.Errorf("delete: the preview differs (-want +got):\n%s", diff)
	}
}

// TestPreviewPolicy previews another ranking of tasks and saves it: a task preempts
// one of its own team.
func TestPreviewPolicy(t *testing.T) {
	noPolicy(t)
	c := clustertest.Get(t)
	console(t)
	class := func(name string, weight int32) v1alpha1.PriorityClass {
		return v1alpha1.PriorityClass{Name: name, Weight: &weight}
	}
	must(t, c.Client.Create(t.Context(), &v1alpha1.ClusterPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName},
		Spec: v1alpha1.ClusterPolicySpec{
			TaskPrioritization: v1alpha1.FirstComeFirstServe, PriorityClasses: []v1alpha1.PriorityClass{class("urgent", 90), class("casual", 10)}, Enforcement: v1alpha1.EnforcementNone,
			IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFirstComeFirstServe},
		},
	}))
	waitForClasses(t, map[string]int32{"urgent": 0, "casual": 0})
	team := makeSeparateTeam(t, "ranked", 4)
	classed := func(name, class string) string {
		return strings.Replace(jobManifest(team, name, 4), "labels: {", "labels: {kueue.x-k8s.io/priority-class: "+class+"-priority, ", 1)
	}
	c.Apply(t, classed("first", "casual"))
	admittedJobs(t, team, "first")
	c.Apply(t, classed("second", "urgent"))

	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, policyPath)
	must(t, page.Locator("#prioritization-TaskRanking").Check())
	press(t, page, "Review changes")
	if diff := cmp.Diff([]string{"preempted first", "started second"}, previewed(t, page, team, "save")); diff != "" {
		t.Errorf("the preview differs (-want +got):\n%s", diff)
	}
	press(t, page, "Save policy")
	admittedJobs(t, team, "second")
}

// TestPreviewNotVerified stops the process that simulates: the page says that its
// preview is not verified and can be saved, and the next preview is computed again.
func TestPreviewNotVerified(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeSeparateTeam(t, "unverified", 4)
	started, address, err := startConsole("unverified", signInEnv(c)...)
	must(t, err)
	t.Cleanup(func() {
		_ = started.Process.Signal(syscall.SIGTERM)
		_ = started.Wait()
	})
	must(t, waitReady(address))
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String(address)})
	must(t, page.Context().AddCookies(cookiesOf(t, user(t, address, "admin"), address)))
	open(t, page, "/policies/allocations/"+team+"/edit")
	must(t, page.Locator("#row-0-accelerators").Fill("8"))
	review(t, page)
	previewed(t, page, team, "save")
	child := consoles.Simulation(t, started.Process.Pid)
	must(t, syscall.Kill(child, syscall.SIGSTOP))
	must(t, page.Locator("#preview").GetByText("Preview again").Click())
	must(t, expect.Locator(page.Locator("#preview [data-state=computing]")).ToBeVisible())
	must(t, expect.Locator(button(page, "Save changes")).ToBeEnabled())
	must(t, expect.Locator(page.Locator("#preview [data-state=unverified]")).ToContainText("took too long", playwright.LocatorAssertionsToContainTextOptions{Timeout: playwright.Float(30_000)}))
	must(t, page.Locator("#preview").GetByText("Preview again").Click())
	previewed(t, page, team, "save")
}
