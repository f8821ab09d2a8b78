package allocations

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
)

// drains tells whether a change stops what runs. A team that is drained
// already has nothing left to stop.
func drains(before, after *v1alpha1.ComputeAllocation) bool {
	return after.Spec.Activation == v1alpha1.Drain && before.Spec.Activation != v1alpha1.Drain
}

// over lists what tasks hold beyond quota, where the change lowers it: what is
// borrowed all along is no news.
func over(holders []holder, before, after quota.Resolved) (lowered []Over) {
	had := quota.PoolResources{}
	had.AddNominal(before)
	for _, o := range beyond(holders, after) {
		if o.Quota < had[o.Pool][o.Resource] {
			lowered = append(lowered, o)
		}
	}
	return lowered
}

// beyond lists what tasks use of each resource of each pool beyond a quota.
func beyond(holders []holder, after quota.Resolved) []Over {
	held, granted := quota.PoolResources{}, quota.PoolResources{}
	granted.AddNominal(after)
	for _, h := range holders {
		for pool, resources := range h.holds {
			held.Add(pool, resources)
		}
	}
	var all []Over
	for _, pool := range slices.Sorted(maps.Keys(held)) {
		for _, name := range held[pool].Names() {
			o := Over{Pool: pool, Resource: name, Held: held[pool][name], Quota: granted[pool][name]}
			if o.Held <= o.Quota {
				continue
			}
			for _, h := range holders {
				if h.holds[pool][name] > 0 {
					o.Tasks = append(o.Tasks, h.task)
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// stuck lists the tasks that could never start again as they are, each with
// the first resource that it is short of: where the change leaves the team
// less of it, or stops the tasks.
func stuck(holders []holder, before, after quota.Resolved, stopped bool) []Stuck {
	var all []Stuck
	for _, h := range holders {
		needs := quota.Resources{}
		for _, resources := range h.holds {
			needs.Add(resources)
		}
		for _, name := range needs.Names() {
			most, bounded := reach(after, name, h.parts)
			had, wasBounded := reach(before, name, h.parts)
			if bounded && needs[name] > most && (stopped || !wasBounded || most < had) {
				all = append(all, Stuck{Task: h.task, Resource: name, Needs: needs[name], Most: most})
				break
			}
		}
	}
	return all
}

// reach is the most of a resource that a task of the team can ever have, by
// quota and borrow limit: in one pool, or in all together where its parts may
// be in several. It is unbounded where anything may be borrowed.
func reach(in quota.Resolved, resource string, parts int) (most int64, bounded bool) {
	var all, largest int64
	for _, pool := range in.Pools {
		if pool.Limit == nil {
			return 0, false
		}
		n := pool.Nominal[resource] + pool.Limit[resource]
		all, largest = all+n, max(largest, n)
	}
	if parts > 1 {
		return all, true
	}
	return largest, true
}
