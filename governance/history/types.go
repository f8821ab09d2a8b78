package history

import (
	"math/big"
	"time"
)

// Task is a task as it was last seen. UID tells it apart from all others.
type Task struct {
	Namespace, Kind, Name, UID string // of the owner, as on a task's page
	Team                       string // whose namespace it ran in; empty for none
	PriorityClass              string // priority class, as its object is named; empty for none
	Priority                   int32
	Queue                      string // LocalQueue
	State                      string // as pages show it; Deleted is told by Gone
	Pools                      []string
	Requests                   map[string]int64 // by Kubernetes resource, in the units of quota.Resources
	SubmittedAt                time.Time
	FinishedAt                 time.Time // zero while it has not
	DeletedAt                  time.Time // when its objects left the cluster; zero while they are there
	Preemptions                int32
	RunTime                    time.Duration // all runs that ended
}

// Step is one thing that happened to a task. Part, What and At tell it apart:
// one that is recorded already is not recorded again.
type Event struct {
	WorkloadUID string // UID of its Workload
	At          time.Time
	Type        string        // as tasks.Happened
	Reason      string        // Kueue's word, such as the rule of a preemption
	Message     string        // Kueue's sentence
	Other       TaskRef       // who it was for; the zero value for nobody, or nobody known
	Ran         time.Duration // how long it had run when it lost its quota; negative where not known
	Size        int32         // pods from then on; 0 where that did not change
	// First and Last are which preemptions of its Workload it was, by Kueue's count:
	// several fall into one second. Both are 0 for anything else, and where that is
	// not known.
	FirstPreemption, LastPreemption int32
}

// Party is another task.
type TaskRef struct{ Namespace, Kind, Name, UID, Team string }

// Span is a wait or a run that has ended. Part, Kind and Began tell it apart.
type Span struct {
	WorkloadUID string
	Kind        SpanKind
	Began       time.Time
	Ended       time.Time
}

// SpanKind is what a task did meanwhile.
type SpanKind string

// What tasks do.
const (
	Wait SpanKind = "wait"
	Run  SpanKind = "run"
)

// Loop is a preemption loop, in which Kueue preempted a Workload again and again.
// Spans of that Workload which began at or after Since and ended at or before Last
// are in no sum. Part and Since tell it apart.
type Loop struct {
	WorkloadUID string
	Since, Last time.Time // its first and its latest preemption, in whole seconds
	Runs        int32     // that it ended after the first preemption
}

// Record is what is known of one task: all of its steps, spans and loops, or those
// that are new. What was recorded before is left as it is, so that it may be told
// again.
type Record struct {
	Task   Task
	Events []Event
	Spans  []Span
	Loops  []Loop
}

// Holder is what an amount is of. Amounts of different holders are never added
// by this package.
type SeriesKey struct {
	Team     string // empty for a whole pool
	Pool     string
	Resource string // Kubernetes resource; memory is counted in MiB, cpu in thousandths
	Measure  Measure
}

// Measure is what is measured.
type Measure string

// Of a pool, OwnBound, BorrowedBound, Outside, Unhealthy and Idle add up to
// Physical at every moment. Held is what admitted tasks hold, of which Unplaced
// is bound to no node. Of a team the same words mean the same.
const (
	Physical      Measure = "physical"
	OwnBound      Measure = "own"      // bound to nodes, on the own quota
	BorrowedBound Measure = "borrowed" // bound to nodes, beyond the own quota
	Outside       Measure = "outside"  // by pods that Kueue does not manage
	Unhealthy     Measure = "unhealthy"
	Idle          Measure = "idle"
	Used          Measure = "held"
	Unplaced      Measure = "unplaced" // held, and bound to no node
	Quota         Measure = "quota"
	Borrowed      Measure = "borrows" // held beyond the own quota
	LentToCohort  Measure = "lent"    // of its quota, to others
)

// Amount is how much a holder has from a moment on.
type Amount struct {
	SeriesKey
	Amount int64
}

// Moment is all that changed at one time: amounts that are not told stay as they
// are.
type Sample struct {
	At      time.Time
	Amounts []Amount
}

// Gap is a time of which nothing is known: no amount holds over it.
type Gap struct {
	From, To time.Time
	Reason   string // a sentence
}

// ClassSums are the waits and runs of one priority class that ended in a range.
type ClassStats struct {
	Class                   string
	Waits, Runs             int64
	WaitMillis, RunMillis   int64 // sums in milliseconds; a Duration ends after 292 years, which many tasks exceed
	LongestWait, LongestRun time.Duration
	LoopRuns                int64 // that preemption loops ended, in no other figure
}

// MeanWait is the average of the waits; 0 where there is none.
func (c ClassStats) MeanWait() time.Duration { return mean(c.WaitMillis, c.Waits) }

// MeanRun is the average of the runs; 0 where there is none.
func (c ClassStats) MeanRun() time.Duration { return mean(c.RunMillis, c.Runs) }

func mean(millis, count int64) time.Duration {
	if count == 0 {
		return 0
	}
	return time.Duration(millis/count) * time.Millisecond
}

// Add adds another class, or the same one of another team, to it.
func (c *ClassStats) Add(o ClassStats) {
	c.Waits += o.Waits
	c.Runs += o.Runs
	c.WaitMillis += o.WaitMillis
	c.RunMillis += o.RunMillis
	c.LongestWait = max(c.LongestWait, o.LongestWait)
	c.LongestRun = max(c.LongestRun, o.LongestRun)
	c.LoopRuns += o.LoopRuns
}

// Total is the integral of an amount over a range: amount × milliseconds, and
// over how many of the range's milliseconds it is known.
type Total struct {
	Sum   *big.Int
	Known time.Duration
}

// Average is the mean over the time that is known; 0 where none is.
func (t Total) Average() float64 {
	if t.Known <= 0 {
		return 0
	}
	mean, _ := new(big.Rat).SetFrac(t.Sum, big.NewInt(t.Known.Milliseconds())).Float64()
	return mean
}

// Point is the average of an amount over one bucket of a series.
type Point struct {
	At    time.Time // begin of the bucket
	Value float64
	Known bool // nothing is known of it, where this is false
}

// Query asks for task records.
type Query struct {
	Teams           []string // nil for all; what belongs to no team has ""
	Namespace       string   // empty for all
	Kind            string   // in any case of letters
	Name            string
	UID             string
	PriorityClasses []string  // as their objects are named, "" for those without one; none is all
	NameContains    string    // in the name, in any case of letters
	Finished        bool      // only those that ended, or whose objects are gone
	From, To        time.Time // by when they were submitted; zero for any
	Limit           int       // at most so many, the newest first
}
