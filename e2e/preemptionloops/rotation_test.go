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

// rotation is a setting in which three tasks preempt each other in turn, and
// each of them is admitted for a moment: a-high preempts a-mid by its class,
// b-low preempts a-high since b then borrows less than a, and a-mid preempts
// b-low since a then borrows less than b.
func rotation(name string) setting {
	return setting{
		name: name,
		teams: []team{
			{name: "a", quota: 8, weight: 30, percent: 50, within: v1alpha1.PreemptLowerPriority},
			{name: "b", quota: 12, weight: 30, percent: 25, within: v1alpha1.PreemptLowerPriority},
		},
		tasks: []task{
			{name: "a-stays", team: 0, gpus: 4, level: high},
			{name: "a-mid", team: 0, gpus: 6, level: mid, after: time.Second},
			{name: "a-high", team: 0, gpus: 8, level: high, after: time.Second},
			{name: "b-low", team: 1, gpus: 15, level: low, after: time.Second},
		},
	}
}

// TestRotation runs tasks that Kueue cannot bring into any order that it keeps.
// No preemption of theirs is fruitless, and the feature gate that ends the
// recipe's loop does not end this one.
func TestRotation(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	furnish(t, c)
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("preemptors first %t", first), func(t *testing.T) {
			configuration{strategies: fairShare.strategies, prioritize: first}.apply(t, c)
			podless.Run(t, c)
			t.Run(warn, func(t *testing.T) {
				startGuard(t, warn)
				o, s := watchWorkloads(t, c), rotation(clustertest.Name("rotation"))
				begin(t, c, s)
				clustertest.Eventually(t, time.Minute, func(context.Context) error {
					if found := o.loops(s.name); len(found) < 3 {
						return fmt.Errorf("want 3 loops, found %v: %s", found, o.describe(s.name))
					}
					return nil
				})
				t.Log(o.loops(s.name))
				for name, h := range o.of(s.name) {
					if h.fruitless() > 0 {
						t.Errorf("%d preemptions of %s were fruitless", h.fruitless(), name)
					}
				}
			})
			t.Run(breakUp, func(t *testing.T) {
				startGuard(t, breakUp)
				o, s := watchWorkloads(t, c), rotation(clustertest.Name("rotation"))
				begin(t, c, s)
				<-time.After(loopWindow + longestLoop)
				for _, l := range o.loops(s.name) {
					if l.lasts() > longestLoop {
						t.Errorf("the loop lasted %.0f s: %s", l.lasts().Seconds(), l)
					}
				}
				t.Log(o.describe(s.name))
			})
		})
	}
}
