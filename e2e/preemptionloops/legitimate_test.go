package preemptionloops_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestLegitimatePreemptions has tasks of a higher class, each of which runs and ends,
// preempt a task of a low class one after the other. That is no loop, however often it
// happens.
func TestLegitimatePreemptions(t *testing.T) {
	c := clustertest.Get(t)
	furnish(t, c)
	fairShare.apply(t, c)
	podless.Run(t, c)
	guard := startGuard(t, breakUp)
	for _, run := range []struct {
		preemptors int
		isLoop     bool // to the oracle, which only counts
	}{{3, false}, {6, true}} {
		t.Run(fmt.Sprint(run.preemptors), func(t *testing.T) {
			t.Parallel()
			o, s := watchWorkloads(t, c), setting{
				name:  clustertest.Name("busy"),
				teams: []team{{name: "a", quota: 8, weight: 10, percent: 50, within: v1alpha1.PreemptLowerPriority}},
				tasks: []task{{name: "low", gpus: 8, level: low}},
			}
			begin(t, c, s)
			lowRuns := func(context.Context) error {
				if !o.of(s.name)["low"].usesQuota {
					return fmt.Errorf("the low class waits: %s", o.describe(s.name))
				}
				return nil
			}
			for i := range run.preemptors {
				clustertest.Eventually(t, clustertest.Patience, lowRuns)
				k := task{name: fmt.Sprintf("high-%d", i), gpus: 8, level: high, runs: 2 * time.Second}
				if err := c.Client.Create(t.Context(), s.job(k)); err != nil {
					t.Fatal(err)
				}
				clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
					if !o.of(s.name)[k.name].done {
						return fmt.Errorf("%s has not ended: %s", k.name, o.describe(s.name))
					}
					return nil
				})
			}
			clustertest.Eventually(t, clustertest.Patience, lowRuns)
			victim := o.of(s.name)["low"]
			if victim.count != int32(run.preemptors) {
				t.Errorf("the low class was preempted %d times, want %d", victim.count, run.preemptors)
			}
			if got := victim.pairs(); got != 1 {
				t.Errorf("one task preempted the low class %d times", got)
			}
			if got := victim.fruitless(); got != 0 {
				t.Errorf("%d preemptions were fruitless", got)
			}
			if got := len(o.loops(s.name)) > 0; got != run.isLoop {
				t.Errorf("the oracle sees a loop: %t, want %t", got, run.isLoop)
			}
			if l, ok := reported(guard, s)["low"]; ok {
				t.Errorf("the guard reports a loop: %+v", l)
			}
			if victim.deactivated > 0 {
				t.Errorf("the low class was deactivated %d times", victim.deactivated)
			}
		})
	}
}
