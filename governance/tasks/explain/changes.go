package explain

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// ChangeKind is the kind of a Change.
type ChangeKind string

// The changes that would start a task, each by itself.
const (
	FewerPods           ChangeKind = "FewerPods"   // run with fewer pods
	TasksEnd            ChangeKind = "TasksEnd"    // these tasks end
	RaiseBorrowingLimit ChangeKind = "BorrowLimit" // the team may borrow more
	RaiseNominalQuota   ChangeKind = "MoreQuota"   // the team gets more quota
	HigherPriorityClass ChangeKind = "HigherClass" // a priority class that Kueue would preempt others for
)

// Change is one change that would start a task.
type Change struct {
	Kind          ChangeKind
	Pods          int32              // FewerPods: that would start now
	Tasks         []AdmittedWorkload // TasksEnd
	PriorityClass string             // HigherClass: the lowest existing one that suffices
	Priority      int32              // HigherClass: of that class
	Quotas        []QuotaChange      // BorrowLimit, MoreQuota: the required amounts
	Share         string             // BorrowLimit, MoreQuota: of the team, whose quota it is; empty for the team's
	LendAndBorrow bool               // BorrowLimit: the allocation also needs that strategy

	// Verified reports that Kueue's scheduler was simulated with the change, and
	// started the task. The fields below are of that simulation.
	Verified bool
	// NeedsNodes are flavors without a node for its pods: the change starts it once they
	// have some, and is not verified. Of a change that is offered, pods fit on nodes
	// otherwise.
	NeedsNodes []string
	// Minimal reports that a smaller figure does not start it; always set for
	// changes without a figure.
	Minimal   bool
	Tied      bool                           // it starts in some orders of ties only
	Preempted []AdmittedWorkload             // for it or for other tasks that start because of the change
	Started   []AdmittedWorkload             // other tasks that start because of the change
	Missed    []AdmittedWorkload             // tasks that would start without the change, and do not with it
	Borrowed  quota.FlavorResourceQuantities // by the task's queue at the end
}

// QuotaChange is a change of the quota of one FlavorResource.
type QuotaChange struct {
	quota.FlavorResource
	From, To resources.Amount // From is -1 for no limit
}

// triedTasks is how many single tasks are tried, the smallest first.
const triedTasks = 64

// changes returns the single changes that start a task, found by trying each.
func (l *snapshot) changes(t Task, all []demand, failed int, need quota.FlavorResourceQuantities, v Verdict) (found []Change) {
	if change, ok := l.fewerPods(t, all); ok {
		found = append(found, change)
	}
	if v.Constraint == Quota {
		if change, ok := l.tasksEnd(all, v); ok {
			found = append(found, change)
		}
		if change, ok := l.higherClass(t, all, failed, need, v); ok {
			found = append(found, change)
		}
	}
	if change, ok := l.raisedQuota(all, v, RaiseBorrowingLimit); ok {
		found = append(found, change)
	}
	if change, ok := l.raisedQuota(all, v, RaiseNominalQuota); ok {
		found = append(found, change)
	}
	return found
}

// fewerPods returns how many pods of a task with one pod set would start.
func (l *snapshot) fewerPods(t Task, all []demand) (Change, bool) {
	if len(t.PodSets) != 1 {
		return Change{}, false
	}
	few := slices.Clone(all)
	low := sort.Search(int(t.PodSets[0].MinCount), func(pods int) bool { // the first that does not start, less one
		for i := range few {
			few[i].pods = int64(pods) + 1
		}
		return !l.fitsNow(few)
	})
	return Change{Kind: FewerPods, Pods: int32(low)}, low > 0
}

// fitsWithout reports whether a task would start if these workloads ended.
func (l *snapshot) fitsWithout(all []demand, removed []*workload) bool {
	for _, s := range removed {
		l.removeUsage(s)
	}
	starts := l.fitsNow(all)
	for _, s := range removed {
		l.addUsage(s)
	}
	return starts
}

// tasksEnd returns the fewest tasks of the queue whose end would start the task:
// one that is large enough, or the largest ones until it starts.
func (l *snapshot) tasksEnd(all []demand, v Verdict) (Change, bool) {
	own := v.Shortage.InQueue // the largest first
	admitted := make([]*workload, len(own))
	for i := range own {
		admitted[i] = l.workload(&own[i])
	}
	enough := sort.Search(len(own), func(i int) bool { return own[i].Usage[v.Shortage.FlavorResource] < v.Shortage.Missing() })
	for i := enough - 1; i >= max(0, enough-triedTasks); i-- {
		if l.fitsWithout(all, admitted[i:i+1]) {
			return Change{Kind: TasksEnd, Tasks: slices.Clone(own[i : i+1])}, true
		}
	}
	if len(own) == 0 || !l.fitsWithout(all, admitted) {
		return Change{}, false
	}
	few := sort.Search(len(own)-1, func(i int) bool { return l.fitsWithout(all, admitted[:i+1]) }) + 1
	return Change{Kind: TasksEnd, Tasks: slices.Clone(own[:few])}, true
}

// higherClass returns the lowest existing priority class with which Kueue would
// preempt others for the task.
func (l *snapshot) higherClass(t Task, all []demand, failed int, need quota.FlavorResourceQuantities, v Verdict) (Change, bool) {
	ranks := slices.DeleteFunc(slices.Clone(l.c.PriorityClasses), func(c PriorityClass) bool { return c.Priority <= t.Priority })
	slices.SortFunc(ranks, func(a, b PriorityClass) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	ranks = slices.CompactFunc(ranks, func(a, b PriorityClass) bool { return a.Priority == b.Priority })
	lowest := sort.Search(len(ranks), func(i int) bool {
		t.Priority = ranks[i].Priority
		_, chance := l.findPreemption(t, all, failed, need, v.Flavors)
		return chance == preempts
	})
	if lowest == len(ranks) {
		return Change{}, false
	}
	return Change{Kind: HigherPriorityClass, PriorityClass: ranks[lowest].Name, Priority: ranks[lowest].Priority}, true
}

// raisedQuota returns how far the borrowing limit or the nominal quota would have
// to rise in the flavor with the smallest shortage.
func (l *snapshot) raisedQuota(all []demand, v Verdict, kind ChangeKind) (Change, bool) {
	q, change := l.c.Queue, Change{Kind: kind, Share: l.c.Queue.Share, LendAndBorrow: kind == RaiseBorrowingLimit && l.c.Queue.NeverBorrows}
	for _, f := range v.Flavors {
		if f.Flavor != v.Shortage.Flavor {
			continue
		}
		for _, s := range f.Shortages {
			limit := q.Limits[s.FlavorResource]
			figure := QuotaChange{FlavorResource: s.FlavorResource}
			switch {
			case kind == RaiseNominalQuota:
				figure.From, figure.To = limit.Nominal, limit.Nominal.Plus(s.Missing())
				limit.Nominal = figure.To
				if limit.LendingLimit != nil && *limit.LendingLimit > limit.Nominal {
					limit.LendingLimit = &limit.Nominal
				}
			case limit.BorrowingLimit == nil || !q.inCohort():
				return Change{}, false
			default:
				figure.From, figure.To = *limit.BorrowingLimit, (*limit.BorrowingLimit).Plus(s.Missing())
				limit.BorrowingLimit = &figure.To
				if q.NeverBorrows { // with the strategy that it needs, it also lends
					limit.LendingLimit = nil
				}
			}
			l.setLimit(s.FlavorResource, limit)
			defer l.setLimit(s.FlavorResource, q.Limits[s.FlavorResource])
			change.Quotas = append(change.Quotas, figure)
		}
	}
	return change, l.fitsNow(all)
}
