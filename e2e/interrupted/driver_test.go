package interrupted_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/activity"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// controllers are Kuota's controllers on a line that can break. Their clock runs
// fast, because waits are not under test here.
type controllers struct {
	reconcile.Reconcilers
	line               *clustertest.Line
	teams, departments []string
}

// clock is that of windows, and activityLog what the controllers record; nil for nothing.
// departments are those that are reconciled beside the team.
var (
	departments []string
	clock       = time.Now
	activityLog *activity.Log
)

// mapper provides the REST mapping, so that discovery does not count as a call of
// the controllers.
var mapper client.Client

// newControllers returns controllers on a line that breaks at call breakAt; see
// clustertest.Line.
func newControllers(t *testing.T, team string, breakAt int64, after bool, install reconcile.KueueInstall) controllers {
	return controllersOn(t, &clustertest.Line{BreakAt: breakAt, After: after}, install, team)
}

// controllersOn returns controllers of these teams on a line.
func controllersOn(t *testing.T, l *clustertest.Line, install reconcile.KueueInstall, teams ...string) controllers {
	t.Helper()
	c := clustertest.Get(t)
	config := l.Over(c.Console)
	if mapper == nil {
		mapper = c.Client
	}
	direct, err := client.New(config, client.Options{Scheme: cluster.Scheme, Mapper: mapper.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	all := reconcile.NewReconcilers(direct, direct, events.NewFakeRecorder(1000), reconcile.Options{Naming: desired.DefaultNaming, Kueue: install})
	all.Allocations.Now, all.Allocations.Activity = clock, activityLog
	now := time.Now()
	all.Ranking.Now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	return controllers{Reconcilers: all, line: l, teams: teams, departments: departments}
}

// run calls every controller in turn until a whole turn writes nothing and done
// returns nil. It returns early when the line breaks.
func (c controllers) run(t *testing.T, done func(context.Context) error) {
	t.Helper()
	type reconciler = func(context.Context, ctrl.Request) (ctrl.Result, error)
	type call struct {
		reconcile reconciler
		name      string
	}
	var turn []call
	for _, reconcile := range []reconciler{c.Pools.Reconcile, c.Ranking.Reconcile, c.Cohort.Reconcile, c.Kueue.Reconcile} {
		turn = append(turn, call{reconcile, ""})
	}
	for _, team := range c.teams {
		turn = append(turn, call{c.Allocations.Reconcile, team})
	}
	turn = append(turn, call{c.Capacity.Reconcile, ""})
	for _, department := range c.departments {
		turn = append(turn, call{c.Departments.Reconcile, department})
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		for before := int64(-1); c.line.Writes() != before; {
			before = c.line.Writes()
			failed := []error{ctx.Err()}
			for _, one := range turn {
				_, err := one.reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: one.name}})
				if c.line.Broken() {
					return nil
				}
				failed = append(failed, err)
			}
			if err := errors.Join(failed...); err != nil {
				return err
			}
		}
		return done(ctx)
	})
}

// interruptEveryCall runs scenario once without an interruption, and then once for
// each call that the controllers made in it, interrupted at that call. make test
// samples a few of the calls. make verify interrupts every call, once before it is
// sent and once with only its response lost.
func interruptEveryCall(t *testing.T, scenario func(t *testing.T, breakAt int64, after bool) (state string, calls int64)) {
	t.Helper()
	want, calls := scenario(t, 0, false)
	if calls < 10 {
		t.Fatalf("got %d calls in the scenario, want at least 10", calls)
	}
	step := int64(1)
	if !clustertest.Verify {
		step = max(1, calls/3)
	}
	t.Logf("%d calls, interrupted at every %d", calls, step)
	for n := int64(1); n <= calls; n += step {
		for _, after := range []bool{false, true} {
			if step > 1 && after != (n/step%2 == 0) {
				continue // the short run alternates
			}
			if got, _ := scenario(t, n, after); got != want {
				t.Fatalf("interrupted at call %s of %d (executed: %v): state differs (-want +got):\n%s", strconv.FormatInt(n, 10), calls, after, diff(want, got))
			}
		}
	}
}

// runInterrupted runs controllers until the line breaks, and then new ones until
// done returns nil. It returns the number of calls that the first controllers made.
func runInterrupted(t *testing.T, team string, breakAt int64, after bool, install reconcile.KueueInstall, done func(context.Context) error) int64 {
	t.Helper()
	first := newControllers(t, team, breakAt, after, install)
	first.run(t, done)
	if first.line.Broken() {
		newControllers(t, team, 0, false, install).run(t, done)
	}
	return first.line.Calls()
}

// noKueue is an install whose Deployment does not exist, for scenarios that do not
// depend on Kueue's configuration.
var noKueue = reconcile.KueueInstall{Namespace: "kueue-system", ConfigMap: "kueue-manager-config", Deployment: "none", Manage: false}
