package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/quota"
)

// Review is what saving an allocation would do. It is computed, not done.
type Review struct {
	// Pools is the quota before and after, in the order of the rows; pools that
	// the team leaves stand last.
	Pools []PoolChange
	// Settings are the other values that change, as people call them, such as
	// "Fair-share weight" from "0" to "10".
	Settings []change.Field
	// Objects are those of Kubernetes and Kueue that change, with their fields,
	// as the API server answered a dry run.
	Objects []change.Object
	// Capacity is what is given out of each pool and resource that the change
	// touches, before and after, beside what is there.
	Capacity []CapacityChange
	// Stopped are the tasks that hold quota now and would be requeued, because
	// the change drains the team.
	Evicted []Task
	// Over is what the team's tasks hold beyond its quota afterwards, where the
	// change lowers that quota. Nothing is stopped for that; other teams may take
	// it back. It is empty where the tasks are stopped anyway.
	QuotaExcess []QuotaExcess
	// Reclaims are what the team could preempt of others then, and cannot now.
	Reclaims []Reclaim
	// Stuck are running tasks that need more than the team could ever have
	// afterwards: they run on, and once stopped never start again as they are.
	Unadmittable []Unadmittable
	// NewPools are pools that are made together with it.
	NewPools []v1alpha1.Pool
	// Unknown says what could not be looked at and why, such as Kueue not
	// answering; empty when the review is whole.
	Unknown string
}

// Empty tells whether saving would change nothing.
func (r Review) Empty() bool {
	return len(r.Pools) == 0 && len(r.Settings) == 0 && len(r.Objects) == 0 && len(r.NewPools) == 0
}

// PoolChange is a team's quota in one pool before and after. Resources that
// are 0 on both sides are left out. A nil limit is without limit.
type PoolChange struct {
	Pool                                      string
	Before, After                             quota.Resources // nil where there is none
	BorrowingLimitBefore, BorrowingLimitAfter quota.Resources
}

// CapacityChange is what is given out of one resource of one pool, in the unit
// of quota.Resources.
type CapacityChange struct {
	Pool, Resource          string
	Physical, Before, After int64
}

// Oversubscribed tells whether more is given out afterwards than is there.
func (c CapacityChange) Oversubscribed() bool { return c.After > c.Physical }

// Over is what a team's tasks hold of one resource in one pool beyond the
// quota it would have.
type QuotaExcess struct {
	Pool, Resource string
	Usage, Nominal int64
	Tasks          []Task // that hold some of it: those that would be taken back first, first
}

// Stuck is a task that needs more of a resource than the quota and the borrow
// limit that the team would have come to.
type Unadmittable struct {
	Task          Task
	Resource      string
	Requests, Max int64
}

// Task is a task as a review or a deletion names it. Kind and name are empty
// for who may not see it.
type Task struct{ Namespace, Kind, Name string }

// Departure is what deleting an allocation would do.
type DeletionPreview struct {
	Running   []Task // that hold quota now: they end before it goes, or are requeued when it is drained
	Waiting   int    // that wait in its queue, and would wait on without one
	Namespace string // the namespace, which stays
	Removed   []change.Object
}
