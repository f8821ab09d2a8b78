package console

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/diagnostics"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Allocations is what pages ask about compute allocations.
type Allocations interface {
	Ready() error
	State(ctx context.Context, user governance.User) (allocations.State, error)
	May(ctx context.Context, user governance.User) (allocations.Permissions, error)
	Find(ctx context.Context, user governance.User, team string) (v1alpha1.ComputeAllocation, error)
	Review(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error)
	Create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error
	Update(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error
	Delete(ctx context.Context, user governance.User, team string, how allocations.Deletion) error
	QueueActivity(ctx context.Context, user governance.User, team string) (allocations.QueueActivity, error)
	PreviewDeletion(ctx context.Context, user governance.User, team string) (allocations.DeletionPreview, error)
	Reclaimable(ctx context.Context, user governance.User, team string) ([]allocations.QuotaExcess, error)
}

// Policy is what pages ask about the cluster policy.
type Policy interface {
	State(ctx context.Context, user governance.User) (policy.State, error)
	// Nodes counts the nodes that pools would have now, the first match first.
	Nodes(ctx context.Context, pools []v1alpha1.Pool) ([]int64, error)
	Review(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (policy.Review, error)
	Save(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) error
}

// Tasks is what pages ask about tasks.
type Tasks interface {
	// Scope is what a user sees as of now, and ListWithin the list of all who see
	// that.
	Scope(ctx context.Context, user governance.User) (access.Scope, error)
	ListWithin(ctx context.Context, scope access.Scope, q index.Query, teams []string) (queries.List, error)
	// ClassesWithin is a list without its tasks.
	ClassesWithin(ctx context.Context, scope access.Scope, teams []string, within time.Duration) (queries.List, error)
	// HeadWithin are the first n tasks that wait in a team's queues, and of how many;
	// patience is how long it waits for their explanations.
	HeadWithin(ctx context.Context, scope access.Scope, team string, n int, patience time.Duration) ([]queries.Item, int, error)
	Detail(ctx context.Context, user governance.User, namespace, kind, name, uid string) (queries.Detail, error)
	YAML(ctx context.Context, user governance.User, namespace, kind, name, uid string) (string, error)
	// LoopsWithin are the preemption loops that everybody who sees that may know of.
	LoopsWithin(ctx context.Context, scope access.Scope) ([]queries.GuardedLoop, error)
	// Readable takes names out of a text of Kueue's that are not for this scope.
	Redactor(ctx context.Context, scope access.Scope) (func(text string) string, error)
	Notices(ctx context.Context, user governance.User, namespace, kind, name, uid string) ([]queries.Notice, error)
}

// Settings is what is asked about how all is set up.
type Settings interface {
	// Shown tells whether somebody is shown the way there.
	CanView(ctx context.Context, user governance.User) bool
	Report(ctx context.Context, user governance.User) (diagnostics.Report, error)
}

// Contact tells how long ago the cluster answered, and whether it still does.
type Contact interface {
	Age(now time.Time) (age time.Duration, ok bool)
}

// Listener tells of changes until ctx ends.
type Listener interface {
	Subscribe(ctx context.Context) <-chan struct{}
}

// Capacity is what pages ask about what the cluster has and who holds it.
type Capacity interface {
	// Within is the cluster as of now, as all see it who have this scope.
	Within(ctx context.Context, scope access.Scope) (*capacity.Snapshot, error)
}

// History is what pages ask about what was.
type History interface {
	// ClassStats are the waits and runs that ended in a range, of these teams or, for
	// nil, of all.
	ClassStats(ctx context.Context, teams []string, from, to time.Time) ([]history.ClassStats, error)
	// Tasks are task records, the newest first, and Timeline one of them with its events,
	// the oldest first.
	Tasks(ctx context.Context, q history.Query) ([]history.Task, error)
	Timeline(ctx context.Context, uid string) (task history.Task, steps []history.Event, found bool, err error)
	Series(ctx context.Context, holders []history.SeriesKey, from, to time.Time, buckets int) (map[history.SeriesKey][]history.Point, error)
	Totals(ctx context.Context, holders []history.SeriesKey, from, to time.Time) (map[history.SeriesKey]history.Total, error)
	Gaps(ctx context.Context, from, to time.Time) ([]history.Gap, error)
	// Since is from when there is history; zero for none.
	Since(ctx context.Context) (time.Time, error)
}
