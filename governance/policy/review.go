package policy

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/change"

	corev1 "k8s.io/api/core/v1"
)

// State is the policy as one reader may see it at one moment.
type State struct {
	Policy *v1alpha1.ClusterPolicy // nil while there is none; shared with the cache: read only
	Types  catalog.Catalog
	// Tasks are the numbers of unfinished tasks by the name of their priority class
	// in the policy; "" counts those without a class. CountTasks sets them, because that
	// reads every task.
	Tasks map[string]int
	// MayEdit reports whether the pages offer to change the policy.
	MayEdit bool
	// Teams are the names of all teams, for readers who see all.
	Teams []string
	// Departments are the names of all departments, for the same readers.
	Departments []string
	// NoMutation reports that the API server has no mutating admission policies, so that
	// it does not set default time limits.
	NoMutation bool

	// The input of ValidatePools. Pages must not show it: a reader may not see all
	// of it.
	nodes       []corev1.Node
	teams       []*v1alpha1.ComputeAllocation
	departments []string // names
	label       string   // the node label of the instance type
}

// Review is what saving a policy would do.
type Review struct {
	// Settings are the values that change.
	Settings []change.Field
	// Classes are those that are created or removed or whose weight changes.
	Classes []ClassChange
	// Reranks reports that tasks get new priorities, and that preemption by priority
	// is off until all tasks have theirs.
	Reranks bool
	// Objects are the Kueue objects that change, as the dry run of the API server
	// reports them.
	Objects []change.Object
	// Restart reports that Kueue restarts: running tasks continue, and for some seconds
	// no task starts and no job can be submitted.
	Restart bool
	// Patch is the change of Kueue's configuration that an admin must apply, because
	// the console may not; empty if there is none.
	Patch string
	// Pools are those that are added, removed or changed, with their new nodes.
	Pools []PoolChange
	// Warnings are about what the policy newly names and does not exist: see Warnings.
	Warnings []governance.FieldError
	// Unknown is what could not be previewed and why; empty if the review is
	// complete.
	Unknown string
}

// ClassChange is one priority class before and after.
type ClassChange struct {
	Name          string
	Before, After *int32 // weight; nil if there is no such class
	Tasks         int    // unfinished tasks of the class
}

// InUse reports whether the class is removed while unfinished tasks use it. Its
// object then stays until the admin confirms its deletion.
func (c ClassChange) InUse() bool { return c.After == nil && c.Tasks > 0 }

// PoolChange is one pool before and after.
type PoolChange struct {
	Name                    string
	NodesBefore, NodesAfter int64
	Types                   []string // instance types of its nodes afterwards
}

// classChanges returns the classes that are created or removed or whose weight
// changes: those of the new policy in its order, then the removed ones.
func classChanges(before, after []v1alpha1.PriorityClass, tasks map[string]int) []ClassChange {
	find := func(in []v1alpha1.PriorityClass, name string) *int32 {
		for _, class := range in {
			if class.Name == name {
				weight := int32(0)
				if class.Weight != nil {
					weight = *class.Weight
				}
				return &weight
			}
		}
		return nil
	}
	var changes []ClassChange
	for _, class := range after {
		change := ClassChange{Name: class.Name, Before: find(before, class.Name), After: find(after, class.Name), Tasks: tasks[class.Name]}
		if change.Before == nil || *change.Before != *change.After {
			changes = append(changes, change)
		}
	}
	for _, class := range before {
		if find(after, class.Name) == nil {
			changes = append(changes, ClassChange{Name: class.Name, Before: find(before, class.Name), Tasks: tasks[class.Name]})
		}
	}
	return changes
}

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
