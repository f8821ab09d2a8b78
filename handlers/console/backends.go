package console

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/notices"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Allocations reads and writes compute allocations.
type Allocations interface {
	Ready() error
	State(ctx context.Context, user governance.User) (allocations.State, error)
	May(ctx context.Context, user governance.User) (allocations.Permissions, error)
	Find(ctx context.Context, user governance.User, team string) (v1alpha1.ComputeAllocation, error)
	Review(ctx context.Context, user governance.User, state allocations.State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error)
	Create(ctx context.Context, user governance.User, state allocations.State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error
	Update(ctx context.Context, user governance.User, state allocations.State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error
	Delete(ctx context.Context, user governance.User, team string, how allocations.Deletion) error
	QueueActivity(ctx context.Context, user governance.User, team string) (allocations.QueueActivity, error)
	TaskCounts(ctx context.Context, user governance.User, teams []v1alpha1.ComputeAllocation) (map[string]allocations.TaskCounts, error)
	PreviewDeletion(ctx context.Context, user governance.User, team string) (allocations.DeletionPreview, error)
}

// Departments reads and writes departments.
type Departments interface {
	State(ctx context.Context, user governance.User) (departments.State, error)
	// Again returns an earlier state as it is now, for all readers with its key.
	Again(ctx context.Context, earlier departments.State) (departments.State, error)
	// TeamsBelow returns the teams in a department and below it, whoever asks.
	TeamsBelow(ctx context.Context, department string) ([]string, error)
	// Figures returns the figures of departments, by name. Teams that are not seen have no
	// name in them.
	Figures(ctx context.Context, state departments.State, seen func(team string) bool) (map[string]departments.Figures, error)
	Review(ctx context.Context, user governance.User, state departments.State, d *v1alpha1.Department) (departments.Review, error)
	Create(ctx context.Context, user governance.User, state departments.State, d *v1alpha1.Department, request string) error
	Update(ctx context.Context, user governance.User, state departments.State, d *v1alpha1.Department) error
	Delete(ctx context.Context, user governance.User, state departments.State, name, resourceVersion, reason string) error
}

// Policy reads and writes the cluster policy.
type Policy interface {
	State(ctx context.Context, user governance.User) (policy.State, error)
	CountTasks(ctx context.Context, state *policy.State) error
	// Nodes counts the nodes that each pool would have now. A node belongs to the first
	// pool that matches.
	Nodes(ctx context.Context, pools []v1alpha1.Pool) ([]int64, error)
	Review(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (policy.Review, error)
	Save(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) error
	TryAgain(ctx context.Context, user governance.User) error
	// SecretNames returns the Secrets that receivers of alerts can name; nil where they are not
	// known.
	SecretNames(ctx context.Context, user governance.User) ([]string, error)
}

// Adoption plans how existing ClusterQueues are adopted, and adopts them.
type Adoption interface {
	// Unmanaged returns the number of ClusterQueues that no allocation names.
	Unmanaged(ctx context.Context) (int, error)
	Plan(ctx context.Context, user governance.User) (adoption.Plan, error)
	// Check is a dry run of Adopt.
	Check(ctx context.Context, user governance.User, names []string) ([]adopt.Result, error)
	Adopt(ctx context.Context, user governance.User, names []string, reason string) ([]adopt.Result, error)
}

// Tasks lists and explains tasks.
type Tasks interface {
	// Scope returns what the user is allowed to see now. The methods called …Within
	// return what every user with this scope sees.
	Scope(ctx context.Context, user governance.User) (access.Scope, error)
	ListWithin(ctx context.Context, scope access.Scope, q index.Query, teams []string) (queries.List, error)
	// ClassesWithin returns a list without its tasks.
	ClassesWithin(ctx context.Context, scope access.Scope, teams []string, within time.Duration) (queries.List, error)
	// UpcomingWithin returns waiting tasks in the order in which Kueue tries to admit
	// them.
	UpcomingWithin(ctx context.Context, scope access.Scope, q queries.UpcomingQuery) (queries.Upcoming, error)
	// HeadWithin returns the first n waiting tasks in a team's queues, and the number of
	// all. patience limits how long it waits for their explanations.
	HeadWithin(ctx context.Context, scope access.Scope, team string, n int, patience time.Duration) ([]queries.Item, int, error)
	// QueueSharesWithin returns the shares of a team that Kueue orders by usage, as a
	// scope sees them.
	QueueSharesWithin(ctx context.Context, scope access.Scope, team string) ([]queries.QueueShare, error)
	Detail(ctx context.Context, user governance.User, namespace, kind, name, uid string) (queries.Detail, error)
	// Task returns a task as a list has it, which costs less than Detail.
	Task(ctx context.Context, user governance.User, at tasks.Address, patience time.Duration) (queries.Item, error)
	YAML(ctx context.Context, user governance.User, namespace, kind, name, uid string) (string, error)
	// SharesWithin returns how idle compute is shared, as a scope sees it.
	SharesWithin(ctx context.Context, scope access.Scope) (queries.Shares, error)
	// LoopsWithin returns the preemption loops that are visible within a scope.
	LoopsWithin(ctx context.Context, scope access.Scope) ([]queries.GuardedLoop, error)
	// Redactor returns a function that removes names outside the scope from a message of
	// Kueue.
	Redactor(ctx context.Context, scope access.Scope) (func(text string) string, error)
	Notices(ctx context.Context, user governance.User, namespace, kind, name, uid string) ([]queries.Notice, error)
}

// Alerts returns what needs attention.
type Alerts interface {
	// Count returns how many alerts fire that are not silenced, as a scope sees them.
	Count(scope access.Scope) int
	Within(ctx context.Context, scope access.Scope) (alerts.State, error)
	MaySilence(ctx context.Context, user governance.User) (bool, error)
	Silence(ctx context.Context, user governance.User, n history.Silence) error
	EndSilence(ctx context.Context, user governance.User, id string) error
	// Test sends a test message to a receiver.
	Test(ctx context.Context, user governance.User, receiver string) error
}

// Notices keeps what people asked to hear of their own tasks.
type Notices interface {
	Get(ctx context.Context, user governance.User) (notices.State, error)
	Set(ctx context.Context, user governance.User, want notices.Settings) error
	// Seen keeps that a user, who may have notices, opened a page.
	Seen(ctx context.Context, user governance.User)
}

// Settings returns the state of the installation.
type Settings interface {
	// CanView reports whether the user is allowed to open the settings.
	CanView(ctx context.Context, user governance.User) bool
	Report(ctx context.Context, user governance.User) (diagnostics.Report, error)
}

// Contact reports when the cluster last answered, and whether it still does.
type Contact interface {
	Age(now time.Time) (age time.Duration, ok bool)
}

// Listener signals changes until ctx ends.
type Listener interface {
	Subscribe(ctx context.Context) <-chan struct{}
}

// Capacity returns the capacity of the cluster and its usage.
type Capacity interface {
	// Within returns the current snapshot, as every user with this scope sees it.
	Within(ctx context.Context, scope access.Scope) (*capacity.Snapshot, error)
}

// History reads recorded usage and tasks.
type History interface {
	// ClassStats returns the waits and runs that ended in a range, of these teams or,
	// for nil, of all.
	ClassStats(ctx context.Context, teams []string, from, to time.Time) ([]history.ClassStats, error)
	// Trends returns waits, failures and preemptions in equal intervals of a range, by
	// priority class or team, of these teams or, for nil, of all.
	Trends(ctx context.Context, by history.TrendKey, teams []string, from, to time.Time, buckets int) (map[string][]history.Trend, error)
	// Tasks returns task records, newest first, and Timeline one of them with its
	// events, oldest first.
	Tasks(ctx context.Context, q history.Query) ([]history.Task, error)
	Timeline(ctx context.Context, uid string) (task history.Task, steps []history.Event, found bool, err error)
	// Activity returns entries, newest first.
	Activity(ctx context.Context, q history.ActivityQuery) ([]history.Activity, error)
	// ScaleEvents returns the latest changes of the size of a task, limit at most, the
	// oldest first.
	ScaleEvents(ctx context.Context, taskUID string, limit int) ([]history.ScaleEvent, error)
	// TrainingStarts returns the latest starts of the workers of a task, limit at most, by time.
	TrainingStarts(ctx context.Context, taskUID string, limit int) ([]history.TrainingStart, error)
	Series(ctx context.Context, keys []history.SeriesKey, from, to time.Time, buckets int) (map[history.SeriesKey][]history.Point, error)
	Totals(ctx context.Context, keys []history.SeriesKey, from, to time.Time) (map[history.SeriesKey]history.Total, error)
	// AboveSince returns since when each sum of series has been above its amount; from where
	// it always was, and the zero time where it is not.
	AboveSince(ctx context.Context, sums []history.Above, from time.Time) ([]time.Time, error)
	// Usage returns the integrals of the selected series over each interval between two
	// consecutive bounds; those of deleted teams and pools too.
	Usage(ctx context.Context, q history.UsageQuery, bounds []time.Time) ([]map[history.SeriesKey]history.Total, error)
	// TaskUsage returns the integrals of runs of tasks over a range, by pool and key, and TasksOf
	// the records of tasks by UID.
	TaskUsage(ctx context.Context, by history.UsageKey, q history.TaskUsageQuery, from, to time.Time) ([]history.TaskUsageTotal, error)
	TasksOf(ctx context.Context, uids []string) (map[string]history.Task, error)
	// Recorded returns the pools and the resources that were ever recorded, sorted.
	Recorded(ctx context.Context) (pools, resources []string, err error)
	Gaps(ctx context.Context, from, to time.Time) ([]history.Gap, error)
	// SampledUntil returns the time of the last sample; zero for none.
	SampledUntil(ctx context.Context) (time.Time, error)
	// Since returns the time from which there is history; zero for none.
	Since(ctx context.Context) (time.Time, error)
}
