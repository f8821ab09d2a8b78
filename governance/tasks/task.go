package tasks

import (
	"strings"
	"time"

	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// State is the state of a task.
type State string

// The states of a task, read from Kueue's conditions (0.16 to 0.19). History stores
// their values.
const (
	Pending   State = "Pending"   // waits for quota
	Preempted State = "Preempted" // preempted, and waits for quota again
	Starting  State = "Starting"  // quota is reserved; pods or checks are not ready yet, or pods have no node
	Running   State = "Running"
	Stopping  State = "Stopping" // evicted or deactivated; its pods are ending
	Stopped   State = "Stopped"  // .spec.active is false
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// States lists all states, in the order of pages.
var States = []State{Running, Starting, Stopping, Pending, Preempted, Stopped, Failed, Succeeded}

// Finished reports whether the task has ended.
func (s State) Finished() bool { return s == Succeeded || s == Failed }

// Waiting reports whether the task waits for quota.
func (s State) Waiting() bool { return s == Pending || s == Preempted }

// UsesQuota reports whether the task uses quota. Kueue gives that of a deactivated one to
// others while its pods are ending: it is Stopping, and its usage is empty.
func (s State) UsesQuota() bool { return s == Running || s == Starting || s == Stopping }

// Task is what people know as one task: a Workload, the slices of an elastic job,
// or several Workloads of one owner. It is immutable.
type Task struct {
	Namespace     string
	Kind          string // of the owner, such as Job; Workload where it has none
	Name          string // of the owner; of the Workload where it has none
	UID           string // of the owner; of the Workload where it has none
	Queue         string // LocalQueue
	PriorityClass string // name of the object; empty for none
	Priority      int32  // of the part that decides; higher first

	State          State
	Since          time.Time // when it entered its state, as far as conditions show
	Reason         string    // Kueue's reason in one word while it does not run
	Message        string    // first line of Kueue's message while it does not run
	PendingMessage string    // the same of the parts that wait while others run; empty for none

	Pools    []string
	Usage    quota.Resources // while it has quota
	Requests quota.Resources // by all that it wants
	Size     Size

	Submitted    time.Time
	SubmittedBy  string        // user, as the API server recorded them; empty if unknown
	Labels       string        // that people gave its job, as key=value with spaces between
	Completed    Completions   // of a Job of several completions; else zero
	WaitingSince time.Time     // zero while it does not wait
	LastWait     time.Duration // the wait that ended with its last admission
	AdmittedAt   time.Time     // the last time; zero while it has no quota
	FinishedAt   time.Time
	RanBefore    time.Duration // before AdmittedAt
	RetryAt      time.Time     // end of Kueue's requeue backoff; else zero

	Preemptions int32 // evictions for another task
	Evictions   int32 // evictions for any reason
	// Replaced counts those of Workloads that do not exist any more, as far as this process
	// saw. They are part of Preemptions and Evictions.
	Replaced EvictionCount
	Lost     Lost // see Keep

	// StoppedReplicas is how many replicas a serving task had when it was stopped; 0 if
	// unknown, and while it runs.
	StoppedReplicas int32

	// NoWorkload reports that the task has no Workload: Kueue counts no quota for it
	// and never starts it. It may run beside Kueue.
	NoWorkload bool

	// Unplaced reports that it is Starting because too many of its pods wait for a node, or
	// because it wants none.
	Unplaced bool

	// Parts are the Workloads, the newest first, shared with the cache: read only.
	Parts []*kueue.Workload
	Main  *kueue.Workload // the part that decides its state; never nil

	AdmittedWorkloads []explain.AdmittedWorkload // see holding
}

// Completions are how many of the completions of a Job succeeded. Of an array, each completes or fails
// by itself.
type Completions struct {
	Done, Of int32
	Array    bool
}

// Size counts the pods of a task.
type Size struct {
	Min        int64 // that it starts with; Wanted if it is not elastic
	Admitted   int64 // admitted
	Wanted     int64
	Guaranteed int64 // of those admitted, with the highest priority of its parts
}

// Resources returns the usage of a task, and its requests while it uses no quota.
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

// Ran returns how long t had quota, over all admissions.
func (t *Task) Ran(now time.Time) time.Duration {
	if t.AdmittedAt.IsZero() {
		return t.RanBefore
	}
	if !t.FinishedAt.IsZero() {
		now = t.FinishedAt
	}
	return t.RanBefore + max(0, now.Sub(t.AdmittedAt))
}

// TimeLimit returns how long Kueue lets the part that decides have quota, over all its
// admissions; 0 for no limit.
func (t *Task) TimeLimit() time.Duration {
	if t.Main == nil {
		return 0
	}
	return time.Duration(ptr.Deref(t.Main.Spec.MaximumExecutionTimeSeconds, 0)) * time.Second
}

// timeLimitReached ends Kueue's message about the eviction of a Workload that had quota
// for as long as its time limit. The condition has no other reason than for any
// deactivated Workload (0.16 to 0.20).
const timeLimitReached = "exceeding the maximum execution time"

// TimedOut reports whether Kueue deactivated t because it reached its time limit.
func (t *Task) TimedOut() bool {
	if t.State != Stopped || t.TimeLimit() == 0 {
		return false
	}
	evicted := meta.FindStatusCondition(t.Main.Status.Conditions, kueue.WorkloadEvicted)
	return evicted != nil && strings.HasSuffix(evicted.Message, timeLimitReached)
}

// Elastic reports whether t is a job of slices: a new size is a new slice, which
// replaces the running one.
func (t *Task) Elastic() bool { return t.Main != nil && t.Main.Annotations[SliceNameAnnotation] != "" }

// Growing reports whether t uses quota and waits for more.
func (t *Task) Growing() bool {
	return t.State.UsesQuota() && t.State != Stopping && t.Size.Wanted > t.Size.Admitted
}

// Key identifies a task by its namespace and its owner's UID.
type Key struct{ Namespace, UID string }

// Key returns the key of a task.
func (t *Task) Key() Key { return Key{t.Namespace, t.UID} }

// Place is where a task uses quota, or waits for it: see clusterstate.Teams.
type Place struct {
	Namespace    string
	LocalQueue   string // empty for none
	ClusterQueue string // that admitted it; empty for none
}

// Place returns the place of a task.
func (t *Task) Place() Place {
	if t.Main == nil {
		return Place{Namespace: t.Namespace, LocalQueue: t.Queue}
	}
	return PlaceOf(t.Main)
}

// QueueLabel is Kueue's label of the LocalQueue on a job or a pod.
const QueueLabel = "kueue.x-k8s.io/queue-name"

// PlaceOf returns the place of a Workload, or that of a job by its label.
func PlaceOf(o metav1.Object) Place {
	w, ok := o.(*kueue.Workload)
	if !ok {
		return Place{Namespace: o.GetNamespace(), LocalQueue: o.GetLabels()[QueueLabel]}
	}
	p := Place{Namespace: w.Namespace, LocalQueue: string(w.Spec.QueueName)}
	if w.Status.Admission != nil {
		p.ClusterQueue = string(w.Status.Admission.ClusterQueue)
	}
	return p
}

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

// Queued reports whether a task waits in its LocalQueue: one that is held or gated does not.
func (t *Task) Queued() bool {
	_, held := t.Hold()
	return t.State.Waiting() && !t.NoWorkload && !held && (t.Main == nil || t.Main.Annotations[AdmissionGatedByAnnotation] == "")
}
