package policy

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/change"

	corev1 "k8s.io/api/core/v1"
)

// State is the policy as one reader may see it at one moment.
type State struct {
	Policy *v1alpha1.ClusterPolicy // nil while there is none; shared with the cache: read only
	Types  catalog.Catalog
	// Tasks are the unfinished tasks by the name of their priority class, as
	// the policy has it; "" counts those without a class. They are counted for
	// those who may edit only: it costs a look at every task.
	Tasks map[string]int
	// MayEdit tells whether the person is shown the way to change it.
	MayEdit bool

	// What pools are checked against. Not for pages: a reader may not see it all.
	nodes []corev1.Node
	teams []v1alpha1.ComputeAllocation
	label string // of a node's instance type
}

// Review is what saving a policy would do.
type Review struct {
	// Settings are the values that change, as people call them.
	Settings []change.Field
	// Classes are those that are made, removed or weighed anew.
	Classes []ClassChange
	// Reranks tells that tasks get new priorities, and that preemption by
	// priority is off until the last has its own.
	Reranks bool
	// Objects are those of Kueue that change, as the API server answered a dry
	// run.
	Objects []change.Object
	// Restart tells that Kueue is restarted: running tasks go on, and for some
	// seconds no task starts and no job can be submitted.
	Restart bool
	// Patch is what has to be changed in Kueue's configuration by hand, since
	// the console may not; empty otherwise.
	Patch string
	// Pools are those that come, go or change, with the nodes they would have.
	Pools []PoolChange
	// Unknown says what could not be looked at and why; empty when the review
	// is whole.
	Unknown string
}

// ClassChange is one priority class before and after.
type ClassChange struct {
	Name          string
	Before, After *int32 // weight; nil where there is no such class
	Tasks         int    // unfinished tasks that name it
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
