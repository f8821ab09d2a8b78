package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// drains reports whether a change starts to drain the queue.
func drains(before, after *v1alpha1.ComputeAllocation) bool {
	return after.Spec.Activation == v1alpha1.Drain && before.Spec.Activation != v1alpha1.Drain
}

// unadmittable returns the admitted tasks that could never be admitted again as
// they are, each with the first resource that exceeds the maximum: where the
// change lowers the maximum or evicts the tasks.
func unadmittable(tasks []admittedTask, before, after quota.Resolved, evicted bool) []Unadmittable {
	var all []Unadmittable
	for _, t := range tasks {
		for _, name := range t.usage.Names() {
			most, bounded := maxQuota(after, name, t.podSets)
			had, wasBounded := maxQuota(before, name, t.podSets)
			if bounded && t.usage[name] > most && (evicted || !wasBounded || most < had) {
				all = append(all, Unadmittable{Task: t.task, Resource: name, Requests: t.usage[name], Max: most})
				break
			}
		}
	}
	return all
}

// maxQuota returns the maximum of a resource that a task of the team can get,
// nominal quota and borrowing limit together: of one pool or, if its pod sets
// can be in different pools, of all pools. bounded is false if any pool has no
// borrowing limit.
func maxQuota(in quota.Resolved, resource string, podSets int) (most resources.Amount, bounded bool) {
	var all, largest resources.Amount
	for _, pool := range in.Pools {
		if pool.BorrowingLimit == nil {
			return 0, false
		}
		n := pool.Nominal[resource].Plus(pool.BorrowingLimit[resource])
		all, largest = all.Plus(n), max(largest, n)
	}
	if podSets > 1 {
		return all, true
	}
	return largest, true
}
