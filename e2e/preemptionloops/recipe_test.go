package preemptionloops_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"
)

const (
	loopLimit  = 40 * time.Second // until the oracle sees the recipe's loop
	breakLimit = 30 * time.Second // until the guard has broken a loop
	quietFor   = 10 * time.Second // without a preemption, the tasks have settled

	reportLimit     = 15 * time.Second // from the first preemption until the guard reports the loop
	mostPreemptions = 6                // of the recipe's victim, with the guard
)

// recipe is the smallest setting that is known to loop: b's task of class mid
// requests what a's task of class mid borrows, and never gets it.
func recipe(name string) setting {
	return setting{
		name: name,
		pods: true,
		teams: []team{
			{name: "a", quota: 8, weight: 30, percent: 50, within: v1alpha1.PreemptLowerPriority},
			{name: "b", quota: 8, weight: 20, percent: 50, within: v1alpha1.PreemptLowerPriority},
		},
		tasks: []task{
			{name: "a-high", team: 0, gpus: 4, level: high},
			{name: "b-low", team: 1, gpus: 4, level: low, after: time.Second},
			{name: "a-mid", team: 0, gpus: 8, level: mid, after: time.Second},
			{name: "b-mid", team: 1, gpus: 8, level: mid, after: time.Second},
		},
	}
}

// slowRecipe is the recipe with pods of b's task of class low that take long to
// end. Where b's other task preempts that one and a's at once, a's is admitted
// and preempted again until both have ended.
func slowRecipe(name string) setting {
	s := recipe(name)
	s.pods, s.tasks[1].ends = false, 12*time.Second
	return s
}

// begin creates a setting, which is removed when the test ends, and submits its
// tasks.
func begin(t *testing.T, c *clustertest.Cluster, s setting) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.remove(ctx, c.Client); err != nil {
			t.Errorf("remove %s: %v", s.name, err)
		}
	})
	if err := s.create(t.Context(), c.Client); err != nil {
		t.Fatal(err)
	}
	if err := s.submit(t.Context(), c.Client); err != nil {
		t.Fatal(err)
	}
}

// TestRecipe runs the recipe of a loop under each configuration of Kueue that
// Kuota may meet: those that Kuota writes in make test, and all in make verify.
// Except where pods are slow, they are real to Kubernetes.
func TestRecipe(t *testing.T) {
	c := clustertest.Get(t)
	furnish(t, c)
	configurations := 7
	if !clustertest.Verify {
		configurations = 2
	}
	for _, run := range []struct {
		name      string
		configure configuration
		recipe    func(name string) setting
		wantLoop  bool
	}{
		{"both strategies", fairShare, recipe, true},
		{"first come, first served", firstCome, recipe, false},
		{finalShare, configuration{strategies: []string{finalShare}}, recipe, true},
		{initialShare, configuration{strategies: []string{initialShare}}, recipe, true},
		{"both strategies, preemptors first", configuration{strategies: fairShare.strategies, prioritize: true}, recipe, false},
		{"first come, first served, slow pods", firstCome, slowRecipe, true},
		{"first come, first served, slow pods, preemptors first", configuration{prioritize: true}, slowRecipe, false},
	}[:configurations] {
		t.Run(run.name, func(t *testing.T) {
			run.configure.apply(t, c)
			podless.Run(t, c)
			s := run.recipe(clustertest.Name("recipe"))
			if !run.wantLoop {
				recipeSettles(t, c, s)
				return
			}
			t.Run(warn, func(t *testing.T) { recipeLoops(t, c, s) })
			t.Run(breakUp, func(t *testing.T) { recipeIsBroken(t, c, run.recipe(clustertest.Name("recipe"))) })
		})
	}
}

// recipeLoops waits until the oracle sees the loop, and checks what it is.
func recipeLoops(t *testing.T, c *clustertest.Cluster, s setting) {
	guard := startGuard(t, warn)
	o := watchWorkloads(t, c)
	begin(t, c, s)
	clustertest.Eventually(t, loopLimit, func(context.Context) error {
		if len(o.loops(s.name)) == 0 {
			return fmt.Errorf("want a loop: %s", o.describe(s.name))
		}
		return nil
	})
	found := o.loops(s.name)
	t.Log(found)
	if len(found) != 1 || found[0].victim != "a-mid" || len(found[0].preemptors) != 1 || found[0].preemptors[0] != "b-mid" {
		t.Errorf("the loops are %v, want a-mid preempted by b-mid alone", found)
	}
	seen := o.of(s.name)
	if l, ok := reported(guard, s)["a-mid"]; !ok || l.Detected.Sub(seen["a-mid"].preemptions[0].at) > reportLimit || l.State != loopguard.Looping || l.NotHeld != loopguard.WarnOnly {
		t.Errorf("the guard reports %+v, want a loop within %s of the first preemption at %s", l, reportLimit, seen["a-mid"].preemptions[0].at)
	}
	if seen["b-mid"].reservations > 0 {
		t.Errorf("quota was reserved for b-mid, which the loop should keep out")
	}
	if got := seen["a-mid"]; got.deactivated > 0 {
		t.Errorf("a-mid was deactivated %d times in mode %s", got.deactivated, warn)
	}
}

// recipeIsBroken waits until b's task runs, a's waits in its queue, and nothing
// is preempted any more.
func recipeIsBroken(t *testing.T, c *clustertest.Cluster, s setting) {
	guard := startGuard(t, breakUp)
	o := watchWorkloads(t, c)
	begin(t, c, s)
	settles(t, o, s, breakLimit+quietFor)
	seen := o.of(s.name)["a-mid"]
	if l, ok := reported(guard, s)["a-mid"]; !ok || l.Holds == 0 || l.Detected.Sub(seen.preemptions[0].at) > reportLimit {
		t.Errorf("the guard reports %+v, want a loop that was held, within %s of the first preemption", l, reportLimit)
	}
	if seen.count > mostPreemptions {
		t.Errorf("a-mid was preempted %d times, want at most %d", seen.count, mostPreemptions)
	}
	for _, l := range o.loops(s.name) {
		if l.lasts() > breakLimit {
			t.Errorf("the loop lasted %.0f s: %s", l.lasts().Seconds(), l)
		}
	}
}

// recipeSettles checks that the same tasks settle by themselves. Before they do,
// b's task may preempt a's twice or three times.
func recipeSettles(t *testing.T, c *clustertest.Cluster, s setting) {
	t.Helper()
	startGuard(t, breakUp)
	o := watchWorkloads(t, c)
	begin(t, c, s)
	settles(t, o, s, loopLimit)
	if found := o.loops(s.name); len(found) > 0 {
		t.Errorf("found loops: %v", found)
	}
}

// settles waits until the preemptor of the recipe has quota, all Workloads are
// active, and none has been preempted for quietFor.
func settles(t *testing.T, o *oracle, s setting, limit time.Duration) {
	t.Helper()
	clustertest.Eventually(t, limit, func(context.Context) error {
		seen := o.of(s.name)
		if !seen["b-mid"].usesQuota {
			return fmt.Errorf("b-mid waits: %s", o.describe(s.name))
		}
		for name, h := range seen {
			if h.inactive {
				return fmt.Errorf("%s is not active", name)
			}
			if n := len(h.preemptions); n > 0 && time.Since(h.preemptions[n-1].at) < quietFor {
				return fmt.Errorf("%s was just preempted: %s", name, o.describe(s.name))
			}
		}
		return nil
	})
	t.Log(o.describe(s.name))
}
