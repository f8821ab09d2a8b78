package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/change"
)

// Review is what saving an allocation would do.
type Review struct {
	// Pools is the quota before and after, in the order of the rows; removed pools
	// come last.
	Pools []PoolChange
	// Settings are the other values that change, such as "Fair-share weight" from
	// "0" to "10".
	Settings []change.Field
	// Objects are the Kubernetes and Kueue objects that change, as the dry run of the
	// API server reports them.
	Objects []change.Object
	// Capacity is the allocated and the physical amount of each pool and resource
	// that the change affects.
	Capacity []CapacityChange
	// Evicted are the admitted tasks that would be requeued, because the change
	// drains the queue.
	Evicted []Task
	// Unadmittable are admitted tasks that request more than the team could ever get
	// afterwards: they keep running, and once evicted are never admitted again as
	// they are.
	Unadmittable []Unadmittable
	// Calendar has the windows of the team in the next two weeks. MoreCalendar reports
	// whether it is cut.
	Calendar     []CalendarLine
	MoreCalendar bool
	// NewPools are the pools that are created with the allocation.
	NewPools []v1alpha1.Pool
	// Unknown is what could not be previewed and why, such as Kueue not answering;
	// empty if the review is complete.
	Unknown string
}

// Empty reports whether saving would change nothing.
func (r Review) Empty() bool {
	return len(r.Pools) == 0 && len(r.Settings) == 0 && len(r.Objects) == 0 && len(r.NewPools) == 0
}

// PoolChange is a team's quota in one pool before and after. Resources that are
// 0 on both sides are omitted. A nil limit means no limit.
type PoolChange struct {
	Pool                                      string
	Before, After                             quota.Resources // nil where there is none
	BorrowingLimitBefore, BorrowingLimitAfter quota.Resources
}

// CapacityChange is the allocated amount of one resource of one pool, in the
// unit of quota.Resources.
type CapacityChange struct {
	Pool, Resource          string
	Physical, Before, After resources.Amount
}

// OverCapacity reports whether more is allocated afterwards than the pool has.
func (c CapacityChange) OverCapacity() bool { return c.After > c.Physical }

// Unadmittable is a task that requests more of a resource than nominal quota and
// borrowing limit of the team together.
type Unadmittable struct {
	Task          Task
	Resource      string
	Requests, Max resources.Amount
}

// Task is the name of a task in a review or a deletion. Kind and name are empty
// for readers who may not see it.
type Task struct{ Namespace, Kind, Name string }

// DeletionPreview is what deleting an allocation would do.
type DeletionPreview struct {
	Running   []Task // admitted tasks: they finish before the deletion completes, or are requeued by a drain
	Waiting   int    // waiting tasks, which would keep waiting without a queue
	Namespace string // which is kept
	Removed   []change.Object
}
