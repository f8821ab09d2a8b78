package history

import (
	"math/big"
	"time"

	"kuota.dev/kuota/governance/quota/resources"
)

// Task is the last recorded state of one task. UID identifies it.
type Task struct {
	Namespace, Kind, Name, UID string // of the owner, as in the URL of the task's page
	Team                       string // team of the namespace when the task ran; empty for none
	PriorityClass              string // name of its WorkloadPriorityClass; empty for none
	Priority                   int32
	Queue                      string // LocalQueue
	State                      string // as pages show it; deletion is in DeletedAt
	Pools                      []string
	Requests                   map[string]resources.Amount // by Kubernetes resource, in the units of quota.Resources
	SubmittedAt                time.Time
	FinishedAt                 time.Time // zero before
	DeletedAt                  time.Time // when its objects were deleted; zero while they exist
	Preemptions                int32
	RunTime                    time.Duration // of all runs that ended
	SubmittedBy                string        // user, or the CronJob; empty if unknown
}

// Event is one event of a task. WorkloadUID, Type and At identify it: an event
// that is recorded already is not recorded again.
type Event struct {
	WorkloadUID string
	At          time.Time
	Type        string        // as tasks.Happened
	Reason      string        // Kueue's reason, such as the rule of a preemption
	Message     string        // Kueue's message
	Preemptor   TaskRef       // task that Kueue preempted it for; zero if none or unknown
	Ran         time.Duration // how long the task had run when it lost its quota; negative if unknown
	Size        int64         // pods from then on; 0 if unchanged
	// FirstPreemption and LastPreemption number the preemptions of the Workload
	// that this event stands for, by Kueue's count: several can share a second.
	// Both are 0 for other events, and if the number is unknown.
	FirstPreemption, LastPreemption int32
}

// TaskRef refers to another task. Its JSON is stored in steps.other.
type TaskRef struct{ Namespace, Kind, Name, UID, Team string }

// Span is a wait or a run that has ended. WorkloadUID, Kind and Began identify it.
type Span struct {
	WorkloadUID string
	Kind        SpanKind
	Began       time.Time
	Ended       time.Time
}

// SpanKind is what the task did during a Span.
type SpanKind string

// The kinds of span.
const (
	Wait SpanKind = "wait"
	Run  SpanKind = "run"
)

// Loop is a preemption loop, in which Kueue preempted one Workload again and
// again. Spans of the Workload that began at or after Since and ended at or before
// Last count in no ClassStats. WorkloadUID and Since identify it.
type Loop struct {
	WorkloadUID string
	Since, Last time.Time // the first and the latest preemption, in whole seconds
	Runs        int32     // runs that it ended after the first preemption
}

// ScaleEvent is one change of the size of an elastic task. TaskUID and Number
// identify it.
type ScaleEvent struct {
	Namespace, Name, TaskUID string // of the task
	Team                     string // of the namespace when it was recorded; empty for none
	Number                   int64  // counts the events of the task from 1, without gaps
	At                       time.Time
	From, To                 int32          // pods with quota before and after it
	Minimum                  int32          // pods of To that are not growth
	Cause                    string         // as v1alpha1.ScaleCause
	Accelerator              string         // resource of a pod; empty for none
	PerPod                   int64          // accelerators of a pod
	By                       string         // user; empty for none
	Node                     string         // that is lost; empty for none
	WorkloadUID              string         // of the Workload that pods were preempted or withdrawn for; empty for none
	For                      TaskRef        // task of that Workload; zero if it was not known when it was recorded
	Idle                     *IdleSources   // whose idle compute the growth uses; nil if unknown
	Changes                  []PolicyChange // of the elastic policy
}

// PolicyChange is a changed field of an elastic policy, by its name in the API; From and To are
// empty for no value. Its JSON is stored in scale_events.changes.
type PolicyChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// IdleSources are the sources of the compute that growth uses. Its JSON is stored in
// scale_events.idle.
type IdleSources struct {
	Own         bool      `json:"own,omitempty"`         // idle quota of its own team
	Unallocated bool      `json:"unallocated,omitempty"` // compute that is allocated to no team
	Lenders     []TeamRef `json:"lenders,omitempty"`     // that lend their idle quota
}

// TeamRef refers to a team. Its namespace decides who may see it; a queue without a
// team has none.
type TeamRef struct {
	Namespace string `json:"namespace"`
	Team      string `json:"team"`
}

// Record is one task with all of its events, spans and loops, or only the new
// ones, and what its Workloads use. Recording the same again changes nothing.
type Record struct {
	Task   Task
	Events []Event
	Spans  []Span
	Loops  []Loop
	Usage  []TaskUsage // of the Workloads that exist
}

// SeriesKey identifies one series of amounts. This package never adds up amounts
// of different series.
type SeriesKey struct {
	Team     string // empty for a whole pool
	Pool     string
	Resource string // Kubernetes resource; memory is in MiB, cpu in thousandths
	Measure  Measure
}

// Of returns the key of another measure of the same amounts.
func (k SeriesKey) Of(m Measure) SeriesKey {
	k.Measure = m
	return k
}

// Measure is what a series measures.
type Measure string

// The measures. For a pool, OwnBound + BorrowedBound + Outside + Unhealthy + Idle
// equals Physical at every moment. Used is the usage of admitted tasks, of which
// Unplaced is bound to no node. For a team the same terms have the same meaning.
const (
	Physical      Measure = "physical"
	OwnBound      Measure = "own"      // bound to nodes, within the nominal quota
	BorrowedBound Measure = "borrowed" // bound to nodes, beyond the nominal quota
	Outside       Measure = "outside"  // used by pods that Kueue does not manage
	Unhealthy     Measure = "unhealthy"
	Idle          Measure = "idle"
	Used          Measure = "held"
	Unplaced      Measure = "unplaced" // used, and bound to no node
	Quota         Measure = "quota"    // nominal quota
	Borrowed      Measure = "borrows"  // used beyond the nominal quota
	LentToCohort  Measure = "lent"     // nominal quota that other teams use: part of their BorrowedBound
	Growth        Measure = "growth"   // used by growth of elastic tasks, own or borrowed
	OwnGrowth     Measure = "growown"  // the part of Growth that is not borrowed
)

// Amount is the value of one series from a moment on.
type Amount struct {
	SeriesKey
	Amount int64
}

// Sample contains the amounts that changed at one time. All other series keep
// their values.
type Sample struct {
	At      time.Time
	Amounts []Amount
}

// Gap is a period without data: no series has a value in it.
type Gap struct {
	From, To time.Time
	Reason   string // a sentence that pages show
}

// ClassStats are the waits and runs of one priority class that ended in a range.
type ClassStats struct {
	Class                   string // name of the WorkloadPriorityClass; empty for none
	Waits, Runs             int64
	WaitMillis, RunMillis   int64 // sums; a time.Duration overflows after 292 years, which many tasks exceed
	LongestWait, LongestRun time.Duration
	LoopRuns                int64 // runs that preemption loops ended; no other field counts them
}

// MeanWait returns the average wait; 0 without waits.
func (c ClassStats) MeanWait() time.Duration { return mean(c.WaitMillis, c.Waits) }

// MeanRun returns the average run; 0 without runs.
func (c ClassStats) MeanRun() time.Duration { return mean(c.RunMillis, c.Runs) }

func mean(millis, count int64) time.Duration {
	if count == 0 {
		return 0
	}
	return time.Duration(millis/count) * time.Millisecond
}

// Add adds o to c and keeps the class of c.
func (c *ClassStats) Add(o ClassStats) {
	c.Waits += o.Waits
	c.Runs += o.Runs
	c.WaitMillis += o.WaitMillis
	c.RunMillis += o.RunMillis
	c.LongestWait = max(c.LongestWait, o.LongestWait)
	c.LongestRun = max(c.LongestRun, o.LongestRun)
	c.LoopRuns += o.LoopRuns
}

// Total is the integral of a series over a range.
type Total struct {
	Sum   *big.Int      // amount × milliseconds
	Known time.Duration // part of the range in which the series has a value
}

// Average returns the mean over Known; 0 if Known is 0.
func (t Total) Average() float64 {
	if t.Known <= 0 {
		return 0
	}
	mean, _ := new(big.Rat).SetFrac(t.Sum, big.NewInt(t.Known.Milliseconds())).Float64()
	return mean
}

// Point is the average of a series over one bucket.
type Point struct {
	At    time.Time // start of the bucket
	Value float64
	Known bool // false if the series has no value in the bucket
}

// UsageQuery selects series. Zero fields select everything.
type UsageQuery struct {
	Teams          []string // nil selects all; "" selects whole pools
	Pool, Resource string
	Measures       []Measure
}

// Query selects task records. Zero fields select everything.
type Query struct {
	Teams           []string // nil selects all; "" selects tasks of no team
	Namespace       string
	Kind            string // case-insensitive
	Name            string
	UID             string
	PriorityClasses []string  // "" selects tasks without one
	NameContains    string    // case-insensitive
	Finished        bool      // only tasks that finished or were deleted
	From, To        time.Time // range of the submission
	Limit           int       // newest first; 0 means 1000
}
