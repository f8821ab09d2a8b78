package tasks

import (
	"time"

	"kuota.dev/kuota/governance/loopguard"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// State is where a task stands.
type State string

// The states of a task, as Kueue's conditions tell them (0.16 to 0.19).
const (
	Pending   State = "Pending"   // waits for quota
	Preempted State = "Preempted" // was stopped for another task, and waits again
	Starting  State = "Starting"  // has its quota; pods or checks are not ready yet
	Running   State = "Running"
	Stopping  State = "Stopping" // loses its quota; its pods are ending
	Stopped   State = "Stopped"  // deactivated: .spec.active is false
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// States lists all states, those that people look for first.
var States = []State{Running, Starting, Stopping, Pending, Preempted, Stopped, Failed, Succeeded}

// Finished tells whether a task has ended.
func (s State) Finished() bool { return s == Succeeded || s == Failed }

// Waiting tells whether a task waits for quota.
func (s State) Waiting() bool { return s == Pending || s == Preempted }

// Holding tells whether a task holds quota.
func (s State) UsesQuota() bool { return s == Running || s == Starting || s == Stopping }

// Task is what people know as one task: a Workload, the slices of an elastic
// job, or several Workloads that one owner made. It is never changed once it is
// made.
type Task struct {
	Namespace     string
	Kind          string // of the owner, such as Job; Workload where it has none
	Name          string // of the owner; of the Workload where it has none
	UID           string // of the owner; of the Workload where it has none
	Queue         string // LocalQueue
	PriorityClass string // priority class, as its object is named; empty for none
	Priority      int32  // of the part that decides; higher first

	State          State
	Since          time.Time // when it came into its state, as far as conditions tell
	Reason         string    // Kueue's reason in one word while it does not run
	Message        string    // the first line of what Kueue says while it does not run
	PendingMessage string    // the same of the parts that wait while others run; empty for none

	Pools    []string
	Usage    quota.Resources // while it has quota
	Requests quota.Resources // by all that it wants
	Size     Size

	Submitted    time.Time
	WaitingSince time.Time     // zero while it does not wait
	LastWait     time.Duration // the wait that ended with its last admission
	AdmittedAt   time.Time     // the last time; zero while it has no quota
	FinishedAt   time.Time
	RanBefore    time.Duration // before AdmittedAt
	RetryAt      time.Time     // when it is put into the queue again, while it backs off; else zero

	Preemptions int32 // how often it lost its quota to another task
	Evictions   int32 // how often it lost its quota, for whatever reason

	// Bare says that there is no Workload of it, so that Kueue counts no quota for
	// it and never starts it; it may run beside Kueue.
	NoWorkload bool

	// Parts are its Workloads, the newest first, shared with the cache: read only.
	Parts []*kueue.Workload
	Main  *kueue.Workload // the part that decides its state; never nil

	AdmittedWorkloads []explain.AdmittedWorkload // see holding
}

// Size is how many pods a task has.
type Size struct {
	Min        int32 // it starts with so many; what it wants where it is not elastic
	Admitted   int32 // admitted
	Wanted     int32
	Guaranteed int32 // of those admitted, with the highest priority of its parts
}

// Resources is what a task holds, and before that what it asks for.
func (t *Task) Resources() quota.Resources {
	if t.State.UsesQuota() {
		return t.Usage
	}
	return t.Requests
}

// Waited returns how long t waits, or waited before its last admission.
func (t *Task) Waited(now time.Time) time.Duration {
	if t.WaitingSince.IsZero() {
		return t.LastWait
	}
	return max(0, now.Sub(t.WaitingSince))
}

// Ran is how long it had its quota, all admissions together.
func (t *Task) Ran(now time.Time) time.Duration {
	if t.AdmittedAt.IsZero() {
		return t.RanBefore
	}
	if !t.FinishedAt.IsZero() {
		now = t.FinishedAt
	}
	return t.RanBefore + max(0, now.Sub(t.AdmittedAt))
}

// Elastic tells whether it is a job of slices: a new size is a new slice, which
// takes the place of the one that runs.
func (t *Task) Elastic() bool { return t.Main != nil && t.Main.Annotations[SliceNameAnnotation] != "" }

// Growing tells whether it runs and waits for more.
func (t *Task) Growing() bool { return t.State.UsesQuota() && t.Size.Wanted > t.Size.Admitted }

// Key identifies a task by its namespace and its owner's UID.
type Key struct{ Namespace, UID string }

// Key returns the key of a task.
func (t *Task) Key() Key { return Key{t.Namespace, t.UID} }

// Address is how readers name a task. Without a UID it is the newest task of the name.
type Address struct{ Namespace, Kind, Name, UID string }

// Address returns the address of a task, which no other task ever has.
func (t *Task) Address() Address { return Address{t.Namespace, t.Kind, t.Name, t.UID} }

// Hold returns the mark of a task that the loop guard keeps out of admission; ok
// is false for any other task.
func (t *Task) Hold() (mark loopguard.Mark, ok bool) {
	if t.Main == nil || t.State.Finished() {
		return loopguard.Mark{}, false
	}
	return loopguard.HoldOf(t.Main)
}

// Queued reports whether a task waits in its LocalQueue.
func (t *Task) Queued() bool {
	_, held := t.Hold()
	return t.State.Waiting() && !t.NoWorkload && !held
}
