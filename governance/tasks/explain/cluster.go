package explain

import (
	"time"

	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
)

// Limit is what a queue may use of one cell.
type Limit struct {
	Nominal        int64
	BorrowingLimit *int64 // nil is without limit
	LendingLimit   *int64 // nil is all of it
}

// Queue is a ClusterQueue.
type Queue struct {
	Name       string
	Team       string // whose it is; empty where that is not known
	Cohort     string // empty for a queue by itself
	Stopped    bool   // held or drained by an admin
	Inactive   string // why Kueue admits nothing into it; empty while it does
	StrictFIFO bool   // a task that does not fit holds up those behind it
	// WithinNever says that no task is stopped for another of the same queue.
	NeverWithinClusterQueue bool
	// Reclaims is which tasks it may stop of queues that hold more than their own.
	ReclaimWithinCohort PreemptionPolicy
	// WhileBorrowing says that it may also do so to borrow, if they are lower, and
	// at most of this Threshold; nil is any. Fair sharing goes by shares instead.
	BorrowWithinCohort   bool
	MaxPriorityThreshold *int32
	Flavors              []string        // in the order in which Kueue tries them
	Resources            []string        // covered
	Groups               []ResourceGroup // that those are in; nil is all in one
	Limits               map[quota.FlavorResource]Limit
	Usage                quota.FlavorResourceQuantities
	SelectsNamespace     func(namespace string) bool // nil selects all
}

// Group is resources that are given a flavor together.
type ResourceGroup struct{ Resources, Flavors []string }

func (q *Queue) groups() []ResourceGroup {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	return []ResourceGroup{{q.Resources, q.Flavors}}
}

func (q *Queue) inCohort() bool { return q.Cohort != "" }

// Exceeds tells whether a queue holds more of anything than its own quota.
func (q *Queue) Borrows() bool {
	for cell, used := range q.Usage {
		if used > q.Limits[cell].Nominal {
			return true
		}
	}
	return false
}

// Flavor is a ResourceFlavor: what its nodes have.
type Flavor struct {
	Labels      map[string]string
	Taints      []corev1.Taint
	Tolerations []corev1.Toleration // that it adds to pods
}

// Class is a priority class.
type PriorityClass struct {
	Name     string
	Priority int32
}

// Holder is a task that holds quota.
type AdmittedWorkload struct {
	Name, Kind, Namespace, UID string // empty for one that is not for the reader
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
	Count, MinCount int32 // Least is Count, unless fewer would do
	Requests        quota.Resources
	// Counts is what quota counts of one pod: configurations of Kueue leave
	// resources out, or count others instead. nil is all that it asks for.
	CountedRequests quota.Resources
	Spec            *corev1.PodSpec // for its node selector, affinity and tolerations
}

func (s *PodSet) counted() quota.Resources {
	if s.CountedRequests != nil {
		return s.CountedRequests
	}
	return s.Requests
}

// Task is what waits.
type Task struct {
	Namespace     string
	Priority      int32
	PodSets       []PodSet
	Deactivated   bool
	LoopHeld      bool      // the loop guard holds it
	Gated         string    // what holds it back by annotation; empty for nothing
	RetryAt       time.Time // zero where it does not back off
	PendingChecks []string  // admission checks that are not done, such as "provision: Pending"
	QuotaReserved bool      // it has its quota already
	NoWorkload    bool      // Kueue has made no Workload of it
	Reason        string    // Kueue's reason in one word; empty where it gave none
	Pods          *Pods     // how its pods do; nil while it has no quota
	// Takes is what it takes over of its own slice that runs, of an elastic job: it
	// stays in those flavors. Queues do not count it as used. nil is nothing.
	ReplacedUsage quota.FlavorResourceQuantities
}

// Placed is how the pods of a task do that has its quota.
type Pods struct {
	Flavors          map[string][]string // that each pod set was given, by its name
	Missing          int32               // pods that nobody has made
	Unscheduled      int32               // pods that have no node
	SchedulerMessage string              // by the scheduler, of one of them
	Requests         []quota.Resources   // what those without a node ask for, each; nil is not known
}

// Ceiling is a limit of a namespace on what its pods may ask for, all together.
type ResourceQuota struct {
	Name       string // of the ResourceQuota
	Resource   string // as the ResourceQuota names it, such as requests.cpu
	Requests   int64  // that one pod asks for, in the unit of the resource
	Hard, Used int64
}

// Cluster is what is known of the cluster.
type Cluster struct {
	Now               time.Time
	LocalQueue        string
	NoLocalQueue      bool // there is no such LocalQueue
	LocalQueueStopped bool
	Queue             *Queue                         // nil where the LocalQueue's does not exist
	Queues            map[string]*Queue              // of the same cohort, with Queue
	CohortQuota       quota.FlavorResourceQuantities // quota of the cohort's own object
	Nested            bool                           // the cohort has a parent or children
	Flavors           map[string]Flavor
	Admitted          []*AdmittedWorkload // of those queues, in the order of Compare
	FairSharing       bool
	PriorityClasses   []PriorityClass // the priority classes that it may be given
	Nodes             []Node
	ResourceQuotas    []ResourceQuota // of its namespace, which would refuse one more pod of it
	PodsNotReady      int             // tasks whose pods Kueue waits for before it starts another

	MissingClass  string   // the priority class that it names and that does not exist
	ClassNames    []string // those that there are
	NotIntegrated string   // its kind, where Kueue does not manage it
}
