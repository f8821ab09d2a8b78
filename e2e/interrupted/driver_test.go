package interrupted_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/reconcile"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// controllers are Kuota's, over a line, with a clock that runs fast: what they
// wait for by the clock is not what is tested here.
type controllers struct {
	reconcile.Reconcilers
	line *clustertest.Line
	team string
}

// mapper is asked once: what kinds there are is no call of the controllers.
var mapper client.Client

func start(t *testing.T, team string, breakAt int64, after bool, install reconcile.KueueInstall) controllers {
	t.Helper()
	c := clustertest.Get(t)
	l := &clustertest.Line{BreakAt: breakAt, After: after}
	config := l.Over(c.Console)
	if mapper == nil {
		mapper = c.Client
	}
	direct, err := client.New(config, client.Options{Scheme: cluster.Scheme, Mapper: mapper.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	all := reconcile.NewReconcilers(direct, direct, events.NewFakeRecorder(1000), reconcile.Options{Naming: desired.DefaultNaming, Kueue: install})
	now := time.Now()
	all.Ranking.Now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	return controllers{Reconcilers: all, line: l, team: team}
}

// run has every controller look in turn until nothing is left to do: done says
// so, and a whole turn wrote nothing. It returns early when the line breaks.
func (c controllers) run(t *testing.T, done func(context.Context) error) {
	t.Helper()
	team := ctrl.Request{NamespacedName: client.ObjectKey{Name: c.team}}
	clustertest.Eventually(t, 60*time.Second, func(ctx context.Context) error {
		before := c.line.Writes()
		var failed []error
		for _, look := range []func(context.Context, ctrl.Request) (ctrl.Result, error){
			c.Pools.Reconcile, c.Ranking.Reconcile, c.Cohort.Reconcile, c.Kueue.Reconcile, c.Allocations.Reconcile, c.Capacity.Reconcile,
		} {
			_, err := look(ctx, team)
			if c.line.Broken() {
				return nil
			}
			failed = append(failed, err)
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		if c.line.Writes() != before {
			return errors.New("there was still something to write")
		}
		return done(ctx)
	})
}

// everyCall runs a scene once undisturbed, and then once for each call that the
// controllers made in it, stopped at that call and made anew. In the short run
// of make test it takes every few calls; make verify takes them all, both when
// the call was not sent and when only its answer was lost.
func everyCall(t *testing.T, scene func(t *testing.T, breakAt int64, after bool) (state string, calls int64)) {
	t.Helper()
	want, calls := scene(t, 0, false)
	if calls < 10 {
		t.Fatalf("the scene makes only %d calls", calls)
	}
	step := int64(1)
	if os.Getenv("KUOTA_VERIFY") == "" {
		step = max(1, calls/3)
	}
	t.Logf("%d calls, stopped at every %d", calls, step)
	for n := int64(1); n <= calls; n += step {
		for _, after := range []bool{false, true} {
			if step > 1 && after != (n/step%2 == 0) {
				continue // the short run takes turns
			}
			if got, _ := scene(t, n, after); got != want {
				t.Fatalf("stopped at call %s of %d (carried out: %v) it ends otherwise:\n%s", strconv.FormatInt(n, 10), calls, after, difference(want, got))
			}
		}
	}
}

// interrupted runs the controllers until the line breaks, and then others to
// the end. It returns how many calls the first made.
func interrupted(t *testing.T, team string, breakAt int64, after bool, install reconcile.KueueInstall, done func(context.Context) error) int64 {
	t.Helper()
	first := start(t, team, breakAt, after, install)
	first.run(t, done)
	if first.line.Broken() {
		start(t, team, 0, false, install).run(t, done)
	}
	return first.line.Calls()
}

// nowhere has the controllers find no configuration of Kueue, for scenes that
// are not about it.
var nowhere = reconcile.KueueInstall{Namespace: "kueue-system", ConfigMap: "kueue-manager-config", Deployment: "none", Manage: false}
