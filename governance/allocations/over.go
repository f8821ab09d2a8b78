package allocations

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
)

// drains reports whether a change starts to drain the queue.
func drains(before, after *v1alpha1.ComputeAllocation) bool {
	return after.Spec.Activation == v1alpha1.Drain && before.Spec.Activation != v1alpha1.Drain
}

// newExcess returns the usage beyond quota that the change causes, and not what
// the team borrows already.
func newExcess(holders []admittedTask, before, after quota.Resolved) (lowered []QuotaExcess) {
	had := quota.PoolResources{}
	had.AddNominal(before)
	for _, o := range quotaExcess(holders, after) {
		if o.Nominal < had[o.Pool][o.Resource] {
			lowered = append(lowered, o)
		}
	}
	return lowered
}

// quotaExcess returns the usage beyond a quota, by pool and resource.
func quotaExcess(holders []admittedTask, after quota.Resolved) []QuotaExcess {
	held, granted := quota.PoolResources{}, quota.PoolResources{}
	granted.AddNominal(after)
	for _, h := range holders {
		for pool, resources := range h.usage {
			held.Add(pool, resources)
		}
	}
	var all []QuotaExcess
	for _, pool := range slices.Sorted(maps.Keys(held)) {
		for _, name := range held[pool].Names() {
			o := QuotaExcess{Pool: pool, Resource: name, Usage: held[pool][name], Nominal: granted[pool][name]}
			if o.Usage <= o.Nominal {
				continue
			}
			for _, h := range holders {
				if h.usage[pool][name] > 0 {
					o.Tasks = append(o.Tasks, h.task)
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// unadmittable returns the admitted tasks that could never be admitted again as
// they are, each with the first resource that exceeds the maximum: where the
// change lowers the maximum or evicts the tasks.
func unadmittable(holders []admittedTask, before, after quota.Resolved, stopped bool) []Unadmittable {
	var all []Unadmittable
	for _, h := range holders {
		needs := quota.Resources{}
		for _, resources := range h.usage {
			needs.Add(resources)
		}
		for _, name := range needs.Names() {
			most, bounded := maxQuota(after, name, h.podSets)
			had, wasBounded := maxQuota(before, name, h.podSets)
			if bounded && needs[name] > most && (stopped || !wasBounded || most < had) {
				all = append(all, Unadmittable{Task: h.task, Resource: name, Requests: needs[name], Max: most})
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
func maxQuota(in quota.Resolved, resource string, parts int) (most int64, bounded bool) {
	var all, largest int64
	for _, pool := range in.Pools {
		if pool.BorrowingLimit == nil {
			return 0, false
		}
		n := pool.Nominal[resource] + pool.BorrowingLimit[resource]
		all, largest = all+n, max(largest, n)
	}
	if parts > 1 {
		return all, true
	}
	return largest, true
}
