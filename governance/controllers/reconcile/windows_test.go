package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// recorded is a history database with the activity of the controllers.
type recorded struct {
	store *history.Store
	log   *activity.Log
}

func newRecord() (*recorded, error) {
	dir, err := os.MkdirTemp(clustertest.Current().Dir, "history") // which is removed with the cluster
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	store, err := history.New(filepath.Join(dir, "history.db"), history.Options{Retention: 365 * 24 * time.Hour, Log: quiet})
	if err != nil {
		return nil, err
	}
	log, err := activity.Open("", store, quiet)
	if err != nil {
		return nil, err
	}
	go func() { _ = log.Run(context.Background()) }()
	return &recorded{store, log}, nil
}

// of returns what Kuota did by itself to the allocation of a team, the first first.
func (r *recorded) of(ctx context.Context, team string) (actions []string, err error) {
	found, err := r.store.Activity(ctx, history.ActivityQuery{Teams: []string{team}, Limit: 100})
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		if a.Source == history.SourceController {
			actions = append([]string{a.Action + " " + a.Reason}, actions...)
		}
	}
	return actions, nil
}

// queueOf returns the nominal GPUs and the stop policy of a team's ClusterQueue.
func queueOf(ctx context.Context, c *clustertest.Cluster, team string) (gpus int64, stop kueue.StopPolicy, err error) {
	var queue kueue.ClusterQueue
	if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
		return 0, "", err
	}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.Name == catalog.GPU {
					gpus += r.NominalQuota.Value()
				}
			}
		}
	}
	if queue.Spec.StopPolicy != nil {
		stop = *queue.Spec.StopPolicy
	}
	return gpus, stop, nil
}

// awaitQueue waits until the queue of a team is as wanted, and returns how long it took.
func awaitQueue(t *testing.T, c *clustertest.Cluster, team string, limit time.Duration, gpus int64, stop kueue.StopPolicy) time.Duration {
	t.Helper()
	began := time.Now()
	clustertest.Eventually(t, limit, func(ctx context.Context) error {
		n, s, err := queueOf(ctx, c, team)
		if err == nil && (n != gpus || s != stop) {
			err = fmt.Errorf("%s has %d GPUs and %s, want %d and %s", team, n, s, gpus, stop)
		}
		return err
	})
	return time.Since(began)
}

// TestWindows opens and closes windows on the real Kueue, and logs how late each is in
// force: the spec does not change, and Activity has each step once.
func TestWindows(t *testing.T) {
	c := setup(t)
	// The clock of the controllers is three seconds before a minute begins.
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	before := func(at time.Time) { ahead.Store(int64(time.Until(at) - 3*time.Second)) }
	minute := clock().UTC().Truncate(time.Minute).Add(5 * time.Minute)
	before(minute)
	text := func(minutes int) string {
		return minute.Add(time.Duration(minutes) * time.Minute).Format("2006-01-02T15:04")
	}
	team := clustertest.Name("windows")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(4)})
	eight := int64(8)
	spec.Windows = []v1alpha1.Window{
		{Name: "event", From: text(0), To: text(1), Quota: []v1alpha1.WindowQuota{{InstanceType: "ml.p5.48xlarge", Accelerators: &eight}}, Notice: &metav1.Duration{Duration: time.Hour}},
		{Name: "upkeep", From: text(1), To: text(2), Activation: v1alpha1.Drain},
	}
	create(t, c, team, spec)
	awaitQueue(t, c, team, clustertest.Patience, 4, kueue.None)
	a := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	if in := a.Status.Active; in == nil || in.Window != "" || in.Announced == nil || in.Announced.Window != "event" {
		t.Errorf("before the window: got %+v, want an announced one", in)
	} else if diff := cmp.Diff(in, a.Status.ActiveCopy); diff != "" {
		t.Errorf("inForce and active of the status differ (-inForce +active):\n%s", diff)
	}
	late := func(boundary time.Time, gpus int64, stop kueue.StopPolicy) {
		t.Helper()
		time.Sleep(boundary.Sub(clock()))
		t.Logf("active %s after its time", awaitQueue(t, c, team, clustertest.Patience, gpus, stop).Round(time.Millisecond))
	}
	touch := func(at time.Time) { // the controllers look at their clock again
		before(at)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"test":%q}}}`, at)
		c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", patch)
	}
	late(minute, 8, kueue.None)
	touch(minute.Add(time.Minute))
	late(minute.Add(time.Minute), 4, kueue.HoldAndDrain) // one follows the other
	touch(minute.Add(2 * time.Minute))
	late(minute.Add(2*time.Minute), 4, kueue.None)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if a.Status.Active != nil || a.Status.ActiveCopy != nil {
			return fmt.Errorf("after the windows: got %+v and %+v, want nothing active", a.Status.Active, a.Status.ActiveCopy)
		}
		return nil
	})
	if a.Generation != 1 {
		t.Errorf("the spec has generation %d, want that windows write none", a.Generation)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		got, err := record.of(ctx, team)
		if want := "open-window window event, close-window window event, open-window window upkeep, close-window window upkeep"; err == nil && strings.Join(got, ", ") != want {
			err = fmt.Errorf("activity is %q, want %q", got, want)
		}
		return err
	})
}

// TestWindowsInvalid leaves the quota that is applied while windows overlap, and delays no
// other team.
func TestWindowsInvalid(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("overlap")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(4)})
	create(t, c, team, spec)
	awaitQueue(t, c, team, soon, 4, kueue.None)
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"windows":[
		{"name":"a","days":["Monday"],"from":"08:00","to":"10:00","activation":"Hold"},{"name":"b","days":["Monday"],"from":"09:00","to":"11:00","activation":"Hold"}]}}`)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "overlaps the window a")
	awaitQueue(t, c, team, soon, 4, kueue.None)
	other := clustertest.Name("beside")
	create(t, c, other, spec)
	awaitQueue(t, c, other, soon, 4, kueue.None)
	refused := map[string]string{
		"days and dates": `{"name":"a","days":["Monday"],"from":"2026-12-01T08:00","to":"2026-12-01T09:00","activation":"Hold"}`,
		"backwards":      `{"name":"a","from":"2026-12-02T08:00","to":"2026-12-01T09:00","activation":"Hold"}`,
		"nothing":        `{"name":"a","from":"2026-12-01T08:00","to":"2026-12-02T09:00"}`,
		"a bad time":     `{"name":"a","from":"2026-12-01T28:00","to":"2026-12-02T09:00","activation":"Hold"}`,
	}
	for name, window := range refused {
		err := c.Client.Patch(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"windows":[`+window+`]}}`)))
		if err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

// TestBudgets counts what history recorded, acts at each step, and begins again with the
// period. A gap counts nothing.
func TestBudgets(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("budget")
	now := time.Now()
	use := func(at time.Time, gpus int64) {
		t.Helper()
		var amounts []history.Amount
		for _, key := range []history.SeriesKey{{Team: team, Pool: "ml.p5.48xlarge", Resource: catalog.GPU, Measure: history.OwnBound}} {
			amounts = append(amounts, history.Amount{SeriesKey: key, Amount: gpus})
		}
		if err := record.store.AppendSamples(t.Context(), []history.Sample{{At: at, Amounts: amounts}}); err != nil {
			t.Fatal(err)
		}
	}
	use(now.Add(-time.Hour), 90) // until now, 90 hours
	use(now, 90)
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(4)})
	hours := int64(100)
	spec.Budget = &v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetQuarter, Steps: []v1alpha1.BudgetStep{
		{Percent: 80, Action: v1alpha1.BudgetNotify}, {Percent: 100, Action: v1alpha1.BudgetBorrowNothing}, {Percent: 120, Action: v1alpha1.BudgetHold}, {Percent: 140, Action: v1alpha1.BudgetDrain},
	}}
	create(t, c, team, spec)
	await := func(percent int64, action v1alpha1.BudgetAction) (s v1alpha1.BudgetStatus) {
		t.Helper()
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var a v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
				return err
			}
			if a.Status.Budget == nil || a.Status.Budget.Percent != percent || a.Status.Budget.Action != action {
				return fmt.Errorf("the budget is %+v, want %d %% and %q", a.Status.Budget, percent, action)
			}
			if limits := action != v1alpha1.BudgetNotify && action != ""; a.Status.ObservedGeneration != a.Generation || limits != (a.Status.Active != nil && a.Status.Active.BudgetAction == action) {
				return fmt.Errorf("active is %+v at generation %d of %d", a.Status.Active, a.Status.ObservedGeneration, a.Generation)
			}
			s = *a.Status.Budget
			return nil
		})
		return s
	}
	await(90, v1alpha1.BudgetNotify)
	awaitQueue(t, c, team, soon, 4, kueue.None)
	var queue kueue.ClusterQueue
	limit := func(ctx context.Context) (total int64, err error) {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return 0, err
		}
		for _, r := range queue.Spec.ResourceGroups[0].Flavors[0].Resources {
			if r.BorrowingLimit != nil {
				total += r.BorrowingLimit.Value()
			}
		}
		return total, nil
	}
	if n, err := limit(t.Context()); err != nil || n == 0 {
		t.Errorf("at notify: got a borrow limit of %d, %v, want one", n, err)
	}
	budget := func(hours int64) {
		t.Helper()
		c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"budget":{"acceleratorHours":%d}}}`, hours))
	}
	budget(90)
	await(100, v1alpha1.BudgetBorrowNothing)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		n, err := limit(ctx)
		if err == nil && n != 0 {
			err = fmt.Errorf("the borrow limit is %d, want 0", n)
		}
		return err
	})
	budget(75)
	await(120, v1alpha1.BudgetHold)
	awaitQueue(t, c, team, soon, 4, kueue.Hold)
	budget(60)
	s := await(150, v1alpha1.BudgetDrain)
	awaitQueue(t, c, team, soon, 4, kueue.HoldAndDrain)
	if s.Used != "90.00" || s.Unknown != nil {
		t.Errorf("got %+v, want 90.00 hours used, and nothing unknown of a team that is new", s)
	}
	budget(1000)
	await(9, "")
	awaitQueue(t, c, team, soon, 4, kueue.None)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		got, err := record.of(ctx, team)
		if want := "used 100 % of its budget: borrow nothing, used 120 % of its budget: hold, used 150 % of its budget: drain, the budget no longer limits the team"; err == nil && strings.ReplaceAll(strings.Join(got, ", "), "budget-step the team ", "") != strings.ReplaceAll(want, "the budget no", "budget-step the budget no") {
			err = fmt.Errorf("activity is %q", got)
		}
		return err
	})
}

// TestChangesOutsideTheConsole records what kubectl does to an allocation, once.
func TestChangesOutsideTheConsole(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("outside")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(1)}))
	awaitQueue(t, c, team, soon, 1, kueue.None)
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"fairShareWeight":7}}`)
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"activation":"Drain"}}`)
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // versions are recorded in their order
		found, err := record.store.Activity(ctx, history.ActivityQuery{Teams: []string{team}})
		if err == nil && len(found) < 3 {
			err = fmt.Errorf("got %d entries, want the creation and the changes", len(found))
		}
		return err
	})
	c.Kubectl(t, "", "delete", "computeallocation", team)
	who, tool := "kubernetes-admin", ""
	if !recordsUsers(t, c) {
		who, tool = "", ", by field manager kubectl-patch"
	}
	want := []string{fmt.Sprintf("create %q outside", who), fmt.Sprintf("update %q outside Fair-share weight: 0 → 7%s", who, tool), fmt.Sprintf("drain %q outside", who), `delete "" outside`}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		found, err := record.store.Activity(ctx, history.ActivityQuery{Teams: []string{team}})
		var got []string
		for _, a := range found {
			text := fmt.Sprintf("%s %q %s", a.Action, a.Actor, a.Source)
			if a.Action == "update" {
				text += " " + strings.Join(a.Changes, ", ")
			}
			got = append(got, text)
		}
		slices.Sort(got)
		slices.Sort(want)
		if err == nil && strings.Join(got, "\n") != strings.Join(want, "\n") {
			err = fmt.Errorf("activity is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return err
	})
}
