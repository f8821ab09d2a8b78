package allocations

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"

	"github.com/google/go-cmp/cmp"
)

// What a change does to tasks that run, told where it is the change that does
// it.
func TestWhatRunningTasksLose(t *testing.T) {
	const g5, g6 = "ml.g5.2xlarge", "ml.g6.12xlarge"
	gpus := func(n int64) quota.Resources { return quota.Resources{catalog.GPU: n} }
	team := func(nominal, limit int64) quota.Resolved {
		return quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(nominal), BorrowingLimit: gpus(limit)}}}
	}
	without := quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(1)}}}
	two := quota.Resolved{Pools: []quota.FlavorQuotas{{Name: g5, Nominal: gpus(2), BorrowingLimit: gpus(2)}, {Name: g6, Nominal: gpus(4), BorrowingLimit: gpus(0)}}}
	task := Task{Kind: "Job", Name: "resnet"}
	overOf := func(n int64) []QuotaExcess {
		return []QuotaExcess{{Pool: g5, Resource: catalog.GPU, Usage: 8, Nominal: n, Tasks: []Task{task}}}
	}
	stuckOf := func(n int64) []Unadmittable {
		return []Unadmittable{{Task: task, Resource: catalog.GPU, Requests: 8, Max: n}}
	}
	for name, tc := range map[string]struct {
		before, after quota.Resolved
		parts         int
		stopped       bool
		wantOver      []QuotaExcess
		wantStuck     []Unadmittable
	}{
		"quota and limit below what it needs":      {before: team(8, 4), after: team(4, 2), wantOver: overOf(4), wantStuck: stuckOf(6)},
		"lowered, and it could borrow the rest":    {before: team(8, 4), after: team(6, 3), wantOver: overOf(6)},
		"it borrows all along":                     {before: team(6, 3), after: team(6, 3)},
		"it borrows, and the limit is lowered":     {before: team(6, 3), after: team(6, 0), wantStuck: stuckOf(6)},
		"too little before, and stopped now":       {before: team(4, 2), after: team(4, 2), stopped: true, wantStuck: stuckOf(6)},
		"without limit it can always come back":    {before: team(8, 4), after: without, wantOver: overOf(1)},
		"a limit where there was none":             {before: without, after: team(1, 0), wantStuck: stuckOf(1)},
		"one part fits into neither pool":          {before: team(8, 0), after: two, wantOver: overOf(2), wantStuck: stuckOf(4)},
		"two parts fit into two pools":             {before: team(8, 0), after: two, parts: 2, wantOver: overOf(2)},
		"the team leaves the pool":                 {before: team(8, 0), after: quota.Resolved{}, wantOver: overOf(0), wantStuck: stuckOf(0)},
		"more quota than before, still too little": {before: team(2, 0), after: team(4, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			holders := []admittedTask{{task: task, usage: quota.PoolResources{g5: gpus(8)}, podSets: max(1, tc.parts)}}
			if diff := cmp.Diff(tc.wantOver, newExcess(holders, tc.before, tc.after)); diff != "" {
				t.Errorf("over (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantStuck, unadmittable(holders, tc.before, tc.after, tc.stopped)); diff != "" {
				t.Errorf("stuck (-want +got):\n%s", diff)
			}
		})
	}
}

// Only what is not drained yet is stopped by draining it.
func TestDrains(t *testing.T) {
	for _, from := range []v1alpha1.Activation{"", v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain} {
		for _, to := range []v1alpha1.Activation{"", v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain} {
			before, after := &v1alpha1.ComputeAllocation{}, &v1alpha1.ComputeAllocation{}
			before.Spec.Activation, after.Spec.Activation = from, to
			if got, want := drains(before, after), to == v1alpha1.Drain && from != v1alpha1.Drain; got != want {
				t.Errorf("from %q to %q drains: %v", from, to, got)
			}
		}
	}
}
