package allocations

import (
	"context"
	"maps"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// figures adds the effect of a change on quota, allocated resources and the
// team's tasks to the review.
func (s *Service) figures(ctx context.Context, user governance.User, reader client.Reader, state State, before, allocation *v1alpha1.ComputeAllocation, wanted wanted, review *Review) error {
	var was quota.Resolved
	name := ""
	if before != nil {
		was, _ = quota.Effective(before, state.Types)
		name = before.Name
	}
	is := wanted.objects.Quota
	review.Pools = PoolChanges(was.Total(), is.Total())

	// The quota before is that of the version just read: the cache may be stale.
	allocated := quota.Allocated(state.all, state.Types, name)
	allocated.AddNominal(was)
	after := quota.Allocated(state.all, wanted.types, name)
	after.AddNominal(is)
	review.Capacity = capacityChanges(review.Pools, allocated, after, wanted.types)

	lines, complete := calendar(state.all, allocation, wanted.types, time.Now())
	review.Calendar, review.MoreCalendar = lines, !complete

	if before == nil {
		return nil
	}
	tasks, err := s.tasksOf(ctx, user, reader, before)
	if err != nil {
		return err
	}
	if drains(effective.Allocation(before, before.Status.Active), withActive(allocation, state.find(allocation.Name))) {
		for _, h := range tasks.admitted {
			review.Evicted = append(review.Evicted, h.task)
		}
	}
	shares := map[string]string{} // by ClusterQueue
	for _, share := range before.Spec.Shares {
		shares[s.Naming.ShareClusterQueue(before.Name, share.Name)] = share.Name
	}
	admitted := map[string][]admittedTask{} // by share; that of the team's queue is empty
	for _, task := range tasks.admitted {
		admitted[shares[task.queue]] = append(admitted[shares[task.queue]], task)
	}
	for _, share := range slices.Sorted(maps.Keys(admitted)) {
		review.Unadmittable = append(review.Unadmittable, unadmittable(admitted[share], was.OfShare(share), is.OfShare(share), len(review.Evicted) > 0)...)
	}
	return nil
}

// PoolChanges compares the quota of a team, pool by pool.
func PoolChanges(before, after quota.Resolved) []PoolChange {
	var changes []PoolChange
	add := func(change PoolChange) {
		for _, name := range change.names() {
			for _, side := range []quota.Resources{change.Before, change.After, change.BorrowingLimitBefore, change.BorrowingLimitAfter} {
				if change.Before[name] == 0 && change.After[name] == 0 && change.BorrowingLimitBefore[name] == 0 && change.BorrowingLimitAfter[name] == 0 {
					delete(side, name)
				}
			}
		}
		if !maps.Equal(change.Before, change.After) || !sameLimit(change.BorrowingLimitBefore, change.BorrowingLimitAfter) || (change.Before == nil) != (change.After == nil) {
			changes = append(changes, change)
		}
	}
	find := func(in quota.Resolved, pool string) (quota.FlavorQuotas, bool) {
		i := slices.IndexFunc(in.Pools, func(p quota.FlavorQuotas) bool { return p.Name == pool })
		if i < 0 {
			return quota.FlavorQuotas{}, false
		}
		return in.Pools[i], true
	}
	for _, pool := range after.Pools {
		change := PoolChange{Pool: pool.Name, After: maps.Clone(pool.Nominal), BorrowingLimitAfter: maps.Clone(pool.BorrowingLimit)}
		if old, ok := find(before, pool.Name); ok {
			change.Before, change.BorrowingLimitBefore = maps.Clone(old.Nominal), maps.Clone(old.BorrowingLimit)
		}
		add(change)
	}
	for _, pool := range before.Pools {
		if _, stays := find(after, pool.Name); !stays {
			add(PoolChange{Pool: pool.Name, Before: maps.Clone(pool.Nominal), BorrowingLimitBefore: maps.Clone(pool.BorrowingLimit)})
		}
	}
	return changes
}

// names returns the resources of a change in the order of quota.Compare.
func (c PoolChange) names() []string {
	all := quota.Resources{}
	for _, side := range []quota.Resources{c.Before, c.After, c.BorrowingLimitBefore, c.BorrowingLimitAfter} {
		maps.Copy(all, side)
	}
	return all.Names()
}

func sameLimit(a, b quota.Resources) bool {
	return (a == nil) == (b == nil) && maps.Equal(a, b)
}

// capacityChanges returns the changes of the allocated resources of the changed
// pools.
func capacityChanges(pools []PoolChange, before, after quota.PoolResources, types catalog.Catalog) []CapacityChange {
	var changes []CapacityChange
	for _, pool := range pools {
		found, _ := types.Find(pool.Pool)
		for _, name := range pool.names() {
			change := CapacityChange{Pool: pool.Pool, Resource: name, Physical: found.Physical[name], Before: before[pool.Pool][name], After: after[pool.Pool][name]}
			if change.Before != change.After && types.OnNodes(name) {
				changes = append(changes, change)
			}
		}
	}
	return changes
}
