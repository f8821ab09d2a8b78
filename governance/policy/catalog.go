package policy

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
)

// catalog returns the catalog with these pools.
func (s State) catalog(pools []v1alpha1.Pool) catalog.Catalog {
	in := catalog.Input{Nodes: s.nodes, InstanceTypeLabel: s.label, Pools: pools}
	if s.Policy != nil {
		in.ReportedTypes = s.Policy.Status.ReportedTypes
	}
	return catalog.New(in)
}

// appliedPools returns the pools that the controller applied. It keeps them
// while a change would take a pool from the quota of a team.
func (s State) appliedPools() []v1alpha1.Pool {
	if s.Policy == nil {
		return nil
	}
	return s.Policy.Status.Pools
}

// poolChanges returns the pools that are added, removed or changed.
func (s State) poolChanges(pools []v1alpha1.Pool) []PoolChange {
	before, after := s.Types, s.catalog(pools)
	names := map[string]bool{}
	for _, types := range []catalog.Catalog{before, after} {
		for _, pool := range types.Pools() {
			names[pool.Name] = true
		}
	}
	var changes []PoolChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := existing(before, name)
		is, has := existing(after, name)
		if had != has || was.Nodes != is.Nodes || !slices.Equal(was.Types, is.Types) {
			changes = append(changes, PoolChange{Name: name, NodesBefore: was.Nodes, NodesAfter: is.Nodes, Types: is.Types})
		}
	}
	return changes
}

// existing returns a pool that has nodes or is named.
func existing(types catalog.Catalog, name string) (catalog.Pool, bool) {
	pool, _ := types.Find(name)
	if pool.Nodes == 0 && !pool.Named {
		return catalog.Pool{}, false
	}
	return pool, true
}
