package explain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Constraint is the reason that decides why a task does not start.
type Constraint string

// The constraints, in the order in which one outdoes the other.
const (
	Deactivated         Constraint = "Deactivated"         // .spec.active is false
	TimedOut            Constraint = "TimedOut"            // the same, because it reached its time limit
	LoopHeld            Constraint = "LoopHeld"            // the loop guard keeps it out of admission
	Gated               Constraint = "Gated"               // an annotation keeps it out of admission
	StartsAfter         Constraint = "StartsAfter"         // it waits for other tasks to end
	NoQueue             Constraint = "NoQueue"             // its LocalQueue does not exist
	NoClusterQueue      Constraint = "NoClusterQueue"      // its LocalQueue leads nowhere
	QueueStopped        Constraint = "QueueStopped"        // stopPolicy of its ClusterQueue; of its LocalQueue if Detail names one
	QueueInactive       Constraint = "QueueInactive"       // such as when a flavor is missing
	CohortCycle         Constraint = "CohortCycle"         // the parents of its Cohort form a cycle
	WrongNamespace      Constraint = "WrongNamespace"      // the queue does not select the namespace
	BackingOff          Constraint = "BackingOff"          // Kueue requeues it later
	ChecksPending       Constraint = "ChecksPending"       // it has its quota
	UncoveredResource   Constraint = "UncoveredResource"   // no quota covers a requested resource
	NoMatchingFlavor    Constraint = "NoMatchingFlavor"    // no pool of the queue has nodes for it
	ExceedsMax          Constraint = "ExceedsMax"          // more than the queue can ever have
	Quota               Constraint = "Quota"               // others use what it needs
	Preempting          Constraint = "Preempting"          // Kueue preempts others for it
	PendingEvaluation   Constraint = "PendingEvaluation"   // it fits; Kueue has not come to it
	Behind              Constraint = "Behind"              // the same, and a task before it in its queue has to start first
	WaitingForPodsReady Constraint = "WaitingForPodsReady" // Kueue waits until the pods of other tasks are ready
	Topology            Constraint = "Topology"            // Kueue finds no nodes that are as close to each other as required

	// Of a job that has no Workload:
	NoQueueName     Constraint = "NoQueueName"     // it names no queue
	NoPriorityClass Constraint = "NoPriorityClass" // it names a priority class that does not exist
	NotIntegrated   Constraint = "NotIntegrated"   // Kueue does not manage its kind
	NoWorkload      Constraint = "NoWorkload"      // Kueue has created none

	// Of a task that has its quota:
	ResourceQuotaReached Constraint = "ResourceQuotaReached" // its namespace's ResourceQuota refuses pods
	NoNodes              Constraint = "NoNodes"              // no matching node is ready
	TooSmall             Constraint = "TooSmall"             // no node is large enough for one of its pods
	Fragmented           Constraint = "Fragmented"           // enough is free, but on no single node
	NodesFull            Constraint = "NodesFull"            // all nodes are full
	PodsTerminating      Constraint = "PodsTerminating"      // nodes are full until pods that are deleted have ended
	Unschedulable        Constraint = "Unschedulable"        // the scheduler finds no node for another reason
	Unknown              Constraint = "Unknown"              // Kueue's reason for what fits
)

// Verdict is why a task does not start, and what would start it.
type Verdict struct {
	Constraint      Constraint
	Detail          string   // text that numbers do not contain, such as the check
	PriorityClasses []string // NoPriorityClass: existing ones
	LocalQueues     []string // NoQueue: those of its namespace
	PodSet          string
	Flavors         []FlavorVerdict // each that was tried, in order
	Shortage        *Shortage       // that decides, in the flavor with the smallest one; nil for none
	Predecessors    []Predecessor   // StartsAfter: those that it waits for
	Changes         []Change        // each of which would start it, the smallest first
	// MayPreempt reports that Kueue may preempt borrowing tasks of others for a task that
	// is short of quota: fair sharing decides by shares, which are not computed.
	MayPreempt bool
	// RulesMayPreempt reports that rules of a PreemptionConfig (Kueue 0.20) may
	// preempt tasks for it, which are not computed.
	RulesMayPreempt bool
	// Fit is how its pods fit on nodes: of a task that has quota and lacks nodes,
	// or would lack them once it has quota. nil if there is nothing to report.
	Fit           *Fit
	ResourceQuota *ResourceQuota // that refuses its pods; nil for none
	// Terminating are the pods whose end PodsTerminating waits for, those that end last
	// first. EndWithin is when all of them have ended, and Unscheduled how many pods wait.
	Terminating []TerminatingPod
	EndWithin   time.Duration
	Unscheduled int64
}

// Predecessor is a task of the same namespace that another one starts after.
type Predecessor struct {
	Kind, Name string // empty once it is deleted
	Any        bool   // however it ends; otherwise only if it succeeds
	Failed     bool
}

// Borrowers returns all lists of queues in a verdict, to be modified in place.
func (v *Verdict) Borrowers() (lists []*[]Borrower) {
	for _, s := range v.shortages() {
		lists = append(lists, &s.Borrowers)
	}
	return lists
}

// Withheld returns all lists of withheld quota in a verdict, to be modified in place.
func (v *Verdict) Withheld() (lists []*[]Withheld) {
	for _, s := range v.shortages() {
		lists = append(lists, &s.Withheld)
	}
	return lists
}

// AdmittedWorkloads returns all lists of workloads in a verdict, to be modified in
// place.
func (v *Verdict) AdmittedWorkloads() (lists []*[]AdmittedWorkload) {
	for _, s := range v.shortages() {
		lists = append(lists, &s.LowerPriority, &s.InQueue)
	}
	for i := range v.Changes {
		c := &v.Changes[i]
		lists = append(lists, &c.Tasks, &c.Preempted, &c.Started, &c.Missed)
	}
	return lists
}

func (v *Verdict) shortages() (list []*Shortage) {
	for i := range v.Flavors {
		for j := range v.Flavors[i].Shortages {
			list = append(list, &v.Flavors[i].Shortages[j])
		}
	}
	if v.Shortage != nil {
		list = append(list, v.Shortage)
	}
	return list
}

// FlavorVerdict is why a flavor is not assigned to a pod set.
type FlavorVerdict struct {
	Flavor    string
	Mismatch  string // such as "needs the label zone=a"; empty where its nodes are right
	Shortages []Shortage
}

// Shortage is a FlavorResource of which too little is available.
type Shortage struct {
	quota.FlavorResource
	Needed resources.Amount // by all pods of the pod set, and by those before it
	// Available and PotentialAvailable are Kueue's: what the queue can use now, and
	// what it can ever have.
	Available, PotentialAvailable resources.Amount
	Nominal                       resources.Amount // the queue's own quota
	Used                          resources.Amount // by its own tasks
	Borrowable                    resources.Amount // unused quota of others and of the cohort that they lend
	BorrowingLimit                *resources.Amount
	Border                        *Border            // that keeps unused quota of others from it; nil for none
	Withheld                      []Withheld         // unused quota that lending limits keep from it, the largest first
	LowerPriority                 []AdmittedWorkload // in the queue, that it may preempt
	LowerPriorityUsage            resources.Amount
	InQueue                       []AdmittedWorkload // using the resource in the queue, the largest first
	Reclaimable                   resources.Amount   // what other queues borrow
	Borrowers                     []Borrower         // those queues, the largest first
}

// Border is the borrowing limit of a Cohort above the queue.
type Border struct {
	Cohort string           // the words that name it
	Left   resources.Amount // that the Cohort may still borrow; of what exceeds the maximum, may borrow at all
	Needed resources.Amount // from beyond the border
}

// Withheld is unused quota that a lending limit of another queue or Cohort keeps.
type Withheld struct {
	Queue  string // empty for a Cohort, and for the sum of those that the viewer may not see
	Team   string // empty if unknown
	Cohort string // the words that name it
	Amount resources.Amount
}

// Borrower is a queue that uses more than its nominal quota.
type Borrower struct {
	Queue  string           // empty for the sum of those that the viewer may not see
	Team   string           // empty if unknown
	Amount resources.Amount // beyond its quota
}

// Missing returns how much is missing now.
func (s Shortage) Missing() resources.Amount { return max(0, s.Needed.Minus(s.Available)) }

func (s Shortage) exceedsMax() bool { return s.Needed > s.PotentialAvailable }

// reach returns which part of what is needed of a flavor a queue can ever have: the
// smallest part of any resource.
func (f FlavorVerdict) reach() float64 {
	part := 1.0
	for _, s := range f.Shortages {
		part = min(part, float64(s.PotentialAvailable)/float64(s.Needed))
	}
	return part
}

// Why returns why a task does not start, and what would start it.
func Why(t Task, c *Cluster) Verdict { return verdict(t, c, false) }

// Brief returns the verdict of Why without the changes that would start the task,
// and without the tasks and teams that use its quota. It is for lists, which show
// the headline of many verdicts: most of the cost of Why is in what it leaves out.
func Brief(t Task, c *Cluster) Verdict { return verdict(t, c, true) }

func verdict(t Task, c *Cluster, brief bool) Verdict {
	if t.Pods != nil && (t.Pods.Missing > 0 || t.Pods.Unscheduled > 0) && len(t.PendingChecks) == 0 {
		return explainScheduling(t, c)
	}
	if v, ok := checkPreconditions(t, c); ok {
		return v
	}
	missing := uncoveredResource(t, c.Queue)
	// Kueue gives these reasons for what no quota covers too.
	either := t.Reason == kueue.WorkloadQuotaReservedReasonNoMatchingFlavor || t.Reason == kueue.WorkloadQuotaReservedReasonExceedsMaxQuota
	if missing != "" && !either {
		return Verdict{Constraint: UncoveredResource, Detail: missing}
	}
	all := demands(t, c)
	l := newSnapshot(c, all)
	l.brief = brief
	v := l.explainFull(t, all)
	if v.Constraint == "" {
		v = l.explain(t, all)
	}
	if missing != "" && (v.Constraint == Unknown || contradicts(t.Reason, v.Constraint)) {
		return Verdict{Constraint: UncoveredResource, Detail: missing}
	}
	if v.Fit = tooSmallEverywhere(all, c); v.Fit != nil {
		v.Changes = nil // no node would hold its pods
	}
	return v
}

// explainFull explains a task with a minimum count: Kueue first preempts others for
// all of its pods, if it can. Empty if it cannot.
func (l *snapshot) explainFull(t Task, all []demand) Verdict {
	whole := slices.Clone(all)
	fewer := false
	for i, d := range all {
		fewer = fewer || d.set.Count > d.set.MinCount
		whole[i].pods = int64(d.set.Count)
	}
	if !fewer {
		return Verdict{}
	}
	if need, failed := l.assignFlavors(whole); failed >= 0 {
		if v := l.explainShortage(t, whole, failed, need); v.Constraint == Preempting {
			return v
		}
	}
	return Verdict{}
}

func (l *snapshot) explain(t Task, all []demand) (v Verdict) {
	need, failed := l.assignFlavors(all)
	switch {
	case failed >= 0:
		v = l.explainShortage(t, all, failed, need)
		if !l.brief && (v.Constraint == Quota || v.Constraint == ExceedsMax) {
			v.Changes = l.changes(t, all, failed, need, v)
		}
		return v
	case l.c.PodsNotReady > 0 || t.Reason == kueue.WorkloadQuotaReservedReasonWaitingForPodsReady:
		v.Constraint = WaitingForPodsReady
	case t.Reason == kueue.WorkloadQuotaReservedReasonTopologyPlacementFailed:
		v.Constraint = Topology
	case contradicts(t.Reason, PendingEvaluation):
		v.Constraint, v.Detail = Unknown, t.Reason // Kueue counts something that this package does not
	case l.c.Behind:
		v.Constraint = Behind
		if l.c.Queue.StrictFIFO {
			v.Detail = string(kueue.StrictFIFO)
		}
	default:
		v.Constraint = PendingEvaluation
	}
	if n := len(all); n > 0 {
		v.Flavors = l.triedFlavors(all[n-1], nil)
	}
	return v
}

// checkPreconditions returns what keeps a task from starting whatever quota is
// free.
func checkPreconditions(t Task, c *Cluster) (Verdict, bool) {
	say := func(constraint Constraint, detail string) (Verdict, bool) {
		return Verdict{Constraint: constraint, Detail: detail}, true
	}
	switch {
	case t.NoWorkload && c.LocalQueue == "":
		return say(NoQueueName, "")
	case t.NoWorkload && c.NotIntegrated != "":
		return say(NotIntegrated, c.NotIntegrated)
	case t.NoWorkload && c.MissingClass != "":
		return Verdict{Constraint: NoPriorityClass, Detail: c.MissingClass, PriorityClasses: c.ClassNames}, true
	case t.NoWorkload:
		return say(NoWorkload, "")
	case t.TimedOut:
		return say(TimedOut, "")
	case t.Deactivated:
		return say(Deactivated, "")
	case t.LoopHeld:
		return say(LoopHeld, "")
	case t.QuotaReserved && len(t.PendingChecks) > 0:
		return say(ChecksPending, strings.Join(t.PendingChecks, ", "))
	case len(t.Predecessors) > 0:
		return Verdict{Constraint: StartsAfter, Predecessors: t.Predecessors}, true
	case t.Gated != "":
		return say(Gated, t.Gated)
	case c.NoLocalQueue:
		return Verdict{Constraint: NoQueue, Detail: c.LocalQueue, LocalQueues: c.LocalQueues}, true
	case c.LocalQueueStopped:
		return say(QueueStopped, c.LocalQueue)
	case c.Queue == nil:
		return say(NoClusterQueue, c.LocalQueue)
	case c.Queue.Stopped:
		return say(QueueStopped, "")
	case c.Queue.Inactive != "":
		return say(QueueInactive, c.Queue.Inactive)
	case len(c.CohortCycle) > 0:
		return say(CohortCycle, strings.Join(c.CohortCycle, ", "))
	case c.Queue.ExcludesNamespace:
		return say(WrongNamespace, c.Queue.Name)
	case t.RetryAt.After(c.Now):
		return say(BackingOff, "")
	}
	return Verdict{}, false
}

// uncoveredResource returns a requested resource that no quota of a queue covers.
// It is no constraint if Kueue's reason names another one: Kueue may be configured
// to ignore resources that queues do not name.
func uncoveredResource(t Task, q *Queue) string {
	if contradicts(t.Reason, UncoveredResource) {
		return ""
	}
	for _, set := range t.PodSets {
		each := set.Counted()
		for _, name := range each.Names() {
			if each[name] > 0 && name != string(corev1.ResourcePods) && !slices.Contains(q.Resources, name) {
				return name
			}
		}
	}
	return ""
}

// explainShortage returns the flavor with the smallest shortage for the demand that
// finds none, and that shortage. need is the usage of the demands before it.
func (l *snapshot) explainShortage(t Task, all []demand, failed int, need quota.FlavorResourceQuantities) Verdict {
	d := all[failed]
	v := Verdict{Constraint: NoMatchingFlavor, PodSet: d.set.Name}
	best := -1
	for i, m := range d.flavors {
		f := l.tryFlavor(d, m, need)
		v.Flavors = append(v.Flavors, f)
		switch {
		case f.Mismatch != "":
		case !slices.ContainsFunc(f.Shortages, Shortage.exceedsMax):
			if v.Constraint != Quota {
				best, v.Constraint = i, Quota
			}
		case best < 0 || v.Constraint == ExceedsMax && f.reach() > v.Flavors[best].reach():
			best, v.Constraint = i, ExceedsMax
		}
	}
	if best < 0 {
		return v
	}
	if v.Constraint == Quota {
		if at, chance := l.findPreemption(t, all, failed, need, v.Flavors); chance == preempts {
			best, v.Constraint = at, Preempting
		} else {
			v.MayPreempt = chance == mayPreempt
			v.RulesMayPreempt = l.c.Queue.PreemptionRules
		}
	}
	worst := slices.MaxFunc(v.Flavors[best].Shortages, func(a, b Shortage) int {
		return cmp.Or(compareBool(a.exceedsMax(), b.exceedsMax()), compareBool(isSecondary(b.Resource), isSecondary(a.Resource)), quota.Compare(b.Resource, a.Resource))
	})
	if !l.brief {
		l.setUsers(t, &worst)
	}
	v.Shortage = &worst
	return v
}

// findPreemption returns the first of the flavors that could take a demand in which Kueue
// preempts for it.
func (l *snapshot) findPreemption(t Task, all []demand, failed int, need quota.FlavorResourceQuantities, flavors []FlavorVerdict) (at int, best outcome) {
	for i, f := range flavors {
		if f.Mismatch != "" || slices.ContainsFunc(f.Shortages, Shortage.exceedsMax) {
			continue
		}
		switch l.preemption(t, l.totalWith(all, failed, f.Flavor, need)) {
		case preempts:
			return i, preempts
		case mayPreempt:
			best = mayPreempt
		}
	}
	return 0, best
}

// isSecondary reports whether a resource follows from accelerators: if both are
// short, the verdict names the accelerators.
func isSecondary(resource string) bool { return !strings.Contains(resource, "/") }

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// setUsers sets the workloads of the queue that use the resource, the queues that borrow
// quota of which the queue could reclaim some, and what others do not lend.
func (l *snapshot) setUsers(t Task, s *Shortage) {
	c, i := l.c, l.index[s.FlavorResource]
	for _, h := range c.Admitted {
		if h.Queue == c.Queue.Name && h.Usage[s.FlavorResource] > 0 {
			s.InQueue = append(s.InQueue, *h)
		}
	}
	slices.SortFunc(s.InQueue, func(a, b AdmittedWorkload) int {
		return cmp.Or(cmp.Compare(b.Usage[s.FlavorResource], a.Usage[s.FlavorResource]), strings.Compare(a.UID, b.UID))
	})
	for _, h := range s.InQueue {
		if h.Priority < t.Priority && !c.Queue.NeverWithinClusterQueue {
			s.LowerPriority = append(s.LowerPriority, h)
			s.LowerPriorityUsage = s.LowerPriorityUsage.Plus(h.Usage[s.FlavorResource])
		}
	}
	for name, n := range l.queues {
		if beyond := n.usage[i].Minus(n.limits[i].Nominal); n != l.own && n.lenderTo([]int{i}) != nil {
			s.Reclaimable = s.Reclaimable.Plus(beyond)
			s.Borrowers = append(s.Borrowers, Borrower{Queue: name, Team: c.Queues[name].Team, Amount: beyond})
		}
	}
	for name, n := range l.queues {
		if amount := n.localAvailable(i); n != l.own && amount > 0 {
			s.Withheld = append(s.Withheld, Withheld{Queue: name, Team: c.Queues[name].Team, Amount: amount})
		}
	}
	for _, n := range l.cohorts {
		if amount := n.localAvailable(i); !n.above && amount > 0 {
			s.Withheld = append(s.Withheld, Withheld{Cohort: n.title, Amount: amount})
		}
	}
	slices.SortFunc(s.Withheld, func(a, b Withheld) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Cohort, b.Cohort))
	})
	slices.SortFunc(s.Borrowers, func(a, b Borrower) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Queue, b.Queue))
	})
}

// mismatch returns why the nodes of a flavor do not match a pod; empty if they do. Kueue
// matches only labels that the flavor itself has.
func mismatch(spec *corev1.PodSpec, f kueue.ResourceFlavorSpec) string {
	if spec == nil {
		return ""
	}
	if taint, repelled := untoleratedTaint(f.NodeTaints, slices.Concat(spec.Tolerations, f.Tolerations)); repelled {
		return "the pods do not tolerate its taint " + taint.ToString()
	}
	asked := onlyKeys(spec, f.NodeLabels)
	for _, key := range slices.Sorted(maps.Keys(asked.NodeSelector)) {
		if want := asked.NodeSelector[key]; f.NodeLabels[key] != want {
			return "the pods want nodes with " + key + "=" + want
		}
	}
	if !matchesAffinity("", f.NodeLabels, asked) {
		return "its nodes do not match the pods' node affinity"
	}
	return ""
}
