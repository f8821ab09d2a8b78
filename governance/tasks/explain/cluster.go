package explain

import (
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Limit is the quota of a queue for one FlavorResource.
type Limit struct {
	Nominal        resources.Amount
	BorrowingLimit *resources.Amount // nil is unlimited
	LendingLimit   *resources.Amount // nil is all of Nominal
}

// Queue is a ClusterQueue.
type Queue struct {
	Name       string
	Team       string  // empty if unknown
	Share      string  // of the team, if it has this quota of its own
	Cohort     string  // empty for a queue by itself
	Weight     float64 // of fair sharing
	Stopped    bool    // stopPolicy is Hold or HoldAndDrain
	Inactive   string  // why Kueue admits nothing into it; empty while it does
	StrictFIFO bool    // a task that does not fit blocks those behind it
	// NeverWithinClusterQueue reports that preemption.withinClusterQueue is Never.
	NeverWithinClusterQueue bool
	// ReclaimWithinCohort selects the tasks that it may preempt in queues that
	// borrow.
	ReclaimWithinCohort kueue.PreemptionPolicy
	// BorrowWithinCohort reports that it may also preempt while it borrows: tasks of a
	// lower priority, of at most MaxPriorityThreshold; nil is any. Fair sharing
	// uses shares instead.
	BorrowWithinCohort   bool
	MaxPriorityThreshold *int32
	// PreemptionRules reports that the queue names a PreemptionConfig (Kueue 0.20),
	// whose rules preempt tasks beside those that the other fields select.
	PreemptionRules bool
	// NeverBorrows reports that its allocation has a strategy with which the API server
	// refuses borrowing limits.
	NeverBorrows      bool
	Flavors           []string        // in the order in which Kueue tries them
	Resources         []string        // covered
	Groups            []ResourceGroup // of Resources and Flavors; nil is one group of all
	Limits            map[quota.FlavorResource]Limit
	Usage             quota.FlavorResourceQuantities
	ExcludesNamespace bool // its selector does not select the namespace of the task
}

// ResourceGroup is resources that Kueue assigns one flavor together.
type ResourceGroup struct{ Resources, Flavors []string }

func (q *Queue) groups() []ResourceGroup {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	return []ResourceGroup{{q.Resources, q.Flavors}}
}

func (q *Queue) inCohort() bool { return q.Cohort != "" }

// Borrows reports whether a queue uses more than its nominal quota of any resource.
func (q *Queue) Borrows() bool {
	for fr, used := range q.Usage {
		if used > q.Limits[fr].Nominal {
			return true
		}
	}
	return false
}

// PriorityClass is a priority class, with the time limits of the cluster policy where
// it is enforced.
type PriorityClass struct {
	Name     string
	Priority int32
	// DefaultTimeLimit and MaximumTimeLimit are in seconds; 0 is none.
	DefaultTimeLimit, MaximumTimeLimit int32
}

// WithTimeLimit returns the classes that a task with a time limit, 0 for none, may have.
func WithTimeLimit(classes []PriorityClass, limit time.Duration) (allowed []PriorityClass) {
	for _, c := range classes {
		if most := time.Duration(c.MaximumTimeLimit) * time.Second; most == 0 || limit > 0 && limit <= most {
			allowed = append(allowed, c)
		}
	}
	return allowed
}

// AdmittedWorkload is what a task uses of one ClusterQueue.
type AdmittedWorkload struct {
	Name, Kind, Namespace, UID string // empty if the viewer may not see it
	Team                       string // "another team" for one that is not for the reader
	Queue                      string // ClusterQueue
	Priority                   int32
	QuotaReservedAt            time.Time // when it got its quota
	WorkloadUID                string    // the UID of its Workload, by which Kueue orders equals
	Usage                      quota.FlavorResourceQuantities
}

// PodSet is a group of equal pods of a task.
type PodSet struct {
	Name            string
	Count, MinCount int32 // MinCount is Count, unless fewer suffice
	Requests        quota.Resources
	// CountedRequests is what quota counts of one pod: Kueue may be configured to
	// exclude or replace resources. nil is Requests.
	CountedRequests quota.Resources
	Spec            *corev1.PodSpec // for its node selector, affinity and tolerations
}

// Counted returns what quota counts of one pod.
func (s *PodSet) Counted() quota.Resources {
	if s.CountedRequests != nil {
		return s.CountedRequests
	}
	return s.Requests
}

// Task is the task to explain.
type Task struct {
	Namespace     string
	Priority      int32
	PodSets       []PodSet
	Deactivated   bool
	TimedOut      bool          // deactivated, because it reached its time limit
	LoopHeld      bool          // by the loop guard
	Gated         string        // the gates of its annotation; empty for none
	Predecessors  []Predecessor // those that Gated stands for, if it has no other gates
	RetryAt       time.Time     // zero where it does not back off
	PendingChecks []string      // admission checks that are not done, such as "provision: Pending"
	QuotaReserved bool          // it has its quota already
	NoWorkload    bool          // Kueue created no Workload
	Reason        string        // Kueue's reason in one word; empty where it gave none
	Pods          *Pods         // nil while it uses no quota
	// ReplacedUsage is what it takes over from the slice of an elastic job that it
	// replaces. It stays in those flavors, and queues do not count it as usage. nil
	// is nothing.
	ReplacedUsage quota.FlavorResourceQuantities
}

// Pods is the state of the pods of a task that uses quota.
type Pods struct {
	Flavors          map[string][]string // assigned, by name of the pod set
	Missing          int64               // not created
	Unscheduled      int64               // pods that have no node
	SchedulerMessage string              // about one of them
	Requests         []quota.Resources   // of each pod without a node; nil if unknown
	Terminating      []TerminatingPod    // of the cluster, in any order
}

// TerminatingPod is a pod that is deleted and still runs: Kueue counts no quota for it
// any more, and the scheduler still counts its requests on its node.
type TerminatingPod struct {
	Node                       string
	Namespace, Kind, Name, UID string // of its task; Name is empty if it has none
	Requests                   quota.Resources
	Until                      time.Time // when it has ended at the latest
}

// ResourceQuota is a limit of a namespace on the sum of its pods' requests.
type ResourceQuota struct {
	Name       string           // of the ResourceQuota
	Resource   string           // as the ResourceQuota names it, such as requests.cpu
	Requests   resources.Amount // of one pod, in the unit of the resource
	Hard, Used resources.Amount
}

// Cluster is the state of the cluster that decides over a task.
type Cluster struct {
	Now               time.Time
	LocalQueue        string
	NoLocalQueue      bool     // LocalQueue does not exist
	LocalQueues       []string // of the namespace, if LocalQueue does not exist
	LocalQueueStopped bool
	Queue             *Queue             // nil where the LocalQueue's does not exist
	Behind            bool               // a task before it waits in Queue, which is StrictFIFO or preempts for that task
	Queues            map[string]*Queue  // of the same tree of Cohorts, with Queue
	Cohorts           map[string]*Cohort // of that tree, those with an object
	CohortCycle       []string           // the Cohorts of Queue, if their parents form a cycle
	Flavors           map[string]kueue.ResourceFlavorSpec
	Admitted          []*AdmittedWorkload // of those queues, in the order of Compare
	FairSharing       bool
	PriorityClasses   []PriorityClass // that the task may get
	Nodes             []Node
	ResourceQuotas    []ResourceQuota // of its namespace, which would refuse one more pod of it
	PodsNotReady      int             // tasks whose pods Kueue waits for before it admits another

	MissingClass  string   // the priority class that it names and that does not exist
	ClassNames    []string // existing ones
	NotIntegrated string   // its kind, where Kueue does not manage it
}
