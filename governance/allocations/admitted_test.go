package allocations

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
)

// A review lists the unadmittable tasks that the change itself causes, and none that
// exist already.
func TestUnadmittableTasks(t *testing.T) {
	const g5, g6 = "ml.g5.2xlarge", "ml.g6.12xlarge"
	gpus := func(n resources.Amount) quota.Resources { return quota.Resources{catalog.GPU: n} }
	team := func(nominal, limit resources.Amount) quota.Resolved {
		return quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(nominal), BorrowingLimit: gpus(limit)}}}
	}
	unlimited := quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(1)}}}
	twoPools := quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(2), BorrowingLimit: gpus(2)}, {Name: g6, Nominal: gpus(4), BorrowingLimit: gpus(0)}}}
	task := Task{Kind: "Job", Name: "resnet"}
	unadmittableOf := func(n resources.Amount) []Unadmittable {
		return []Unadmittable{{Task: task, Resource: catalog.GPU, Requests: 8, Max: n}}
	}
	for name, tc := range map[string]struct {
		before, after quota.Resolved
		podSets       int
		evicted       bool
		want          []Unadmittable
	}{
		"nominal quota and limit below the requests":      {before: team(8, 4), after: team(4, 2), want: unadmittableOf(6)},
		"nominal quota lowered, the rest can be borrowed": {before: team(8, 4), after: team(6, 3)},
		"borrows before and after":                        {before: team(6, 3), after: team(6, 3)},
		"borrows, and the limit is lowered":               {before: team(6, 3), after: team(6, 0), want: unadmittableOf(6)},
		"too little before, and evicted now":              {before: team(4, 2), after: team(4, 2), evicted: true, want: unadmittableOf(6)},
		"no limit, so it can always be admitted again":    {before: team(8, 4), after: unlimited},
		"a limit where none was":                          {before: unlimited, after: team(1, 0), want: unadmittableOf(1)},
		"one pod set fits into neither pool":              {before: team(8, 0), after: twoPools, want: unadmittableOf(4)},
		"two pod sets fit into two pools":                 {before: team(8, 0), after: twoPools, podSets: 2},
		"quota in the pool removed":                       {before: team(8, 0), after: quota.Resolved{}, want: unadmittableOf(0)},
		"more quota than before, still too little":        {before: team(2, 0), after: team(4, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			admitted := []admittedTask{{task: task, usage: gpus(8), podSets: max(1, tc.podSets)}}
			if diff := cmp.Diff(tc.want, unadmittable(admitted, tc.before, tc.after, tc.evicted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A change drains a queue only if the queue is not drained already.
func TestDrainsOnlyOnce(t *testing.T) {
	for _, from := range []v1alpha1.Activation{"", v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain} {
		for _, to := range []v1alpha1.Activation{"", v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain} {
			before, after := &v1alpha1.ComputeAllocation{}, &v1alpha1.ComputeAllocation{}
			before.Spec.Activation, after.Spec.Activation = from, to
			if got, want := drains(before, after), to == v1alpha1.Drain && from != v1alpha1.Drain; got != want {
				t.Errorf("from %q to %q: drains is %t, want %t", from, to, got, want)
			}
		}
	}
}
