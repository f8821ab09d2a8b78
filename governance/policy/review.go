package policy

import (
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
	// in the policy; "" counts those without a class. They are counted only for
	// readers who may edit the policy, because that reads every task.
	Tasks map[string]int
	// MayEdit reports whether the pages offer to change the policy.
	MayEdit bool
	// NoMutation reports that the API server has no mutating admission policies, so that
	// it does not set default time limits.
	NoMutation bool

	// The input of ValidatePools. Pages must not show it: a reader may not see all
	// of it.
	nodes []corev1.Node
	teams []v1alpha1.ComputeAllocation
	label string // the node label of the instance type
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
