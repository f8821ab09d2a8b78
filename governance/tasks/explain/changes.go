package explain

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"kuota.dev/kuota/governance/quota"
)

// Kind is what somebody could change.
type Kind string

// What would start a task, each by itself.
const (
	FewerPods   Kind = "FewerPods"   // run with fewer pods
	TasksEnd    Kind = "TasksEnd"    // these tasks end
	BorrowLimit Kind = "BorrowLimit" // the team may borrow more
	MoreQuota   Kind = "MoreQuota"   // the team gets more quota
	HigherClass Kind = "HigherClass" // a class for which these tasks are stopped
)

// Change is one change that would start a task.
type Change struct {
	Kind     Kind
	Pods     int32    // FewerPods: that would start now
	Tasks    []Holder // TasksEnd, HigherClass
	Class    string   // HigherClass: the lowest that there is and that does
	Priority int32    // HigherClass: of that class
	To       []Figure // BorrowLimit, MoreQuota: what each would have to be
}

// Figure is an amount of one cell.
type Figure struct {
	quota.FlavorResource
	From, To int64 // From is -1 for a limit that there is not
}

// triedTasks is how many single tasks are tried out, the smallest first.
const triedTasks = 64

// changes looks for single changes that start a task, by trying each.
func (l *ledger) changes(t Task, all []demand, failed int, need quota.FlavorResourceQuantities, v Verdict) (found []Change) {
	if change, ok := l.fewer(t, all); ok {
		found = append(found, change)
	}
	if v.Constraint == Quota {
		if change, ok := l.ending(all, v); ok {
			found = append(found, change)
		}
		if change, ok := l.higher(t, all, failed, need, v); ok {
			found = append(found, change)
		}
	}
	if change, ok := l.raised(all, v, BorrowLimit); ok {
		found = append(found, change)
	}
	if change, ok := l.raised(all, v, MoreQuota); ok {
		found = append(found, change)
	}
	return found
}

// fewer is how many pods of a task with one pod set would start.
func (l *ledger) fewer(t Task, all []demand) (Change, bool) {
	if len(t.PodSets) != 1 {
		return Change{}, false
	}
	few := slices.Clone(all)
	low := sort.Search(int(t.PodSets[0].Least), func(pods int) bool { // the first that does not start, less one
		for i := range few {
			few[i].pods = int64(pods) + 1
		}
		return !l.starts(few)
	})
	return Change{Kind: FewerPods, Pods: int32(low)}, low > 0
}

// startsWithout tells whether a task would start if these were gone.
func (l *ledger) startsWithout(all []demand, gone []*stake) bool {
	for _, s := range gone {
		l.take(s)
	}
	starts := l.starts(all)
	for _, s := range gone {
		l.put(s)
	}
	return starts
}

// ending is the fewest tasks of the own queue whose end would start the task:
// one that is large enough, or the largest until it starts.
func (l *ledger) ending(all []demand, v Verdict) (Change, bool) {
	own := v.Decides.Own // the largest first
	stakes := make([]*stake, len(own))
	for i := range own {
		stakes[i] = l.stake(&own[i])
	}
	enough := sort.Search(len(own), func(i int) bool { return own[i].Holds[v.Decides.FlavorResource] < v.Decides.Short() })
	for i := enough - 1; i >= max(0, enough-triedTasks); i-- {
		if l.startsWithout(all, stakes[i:i+1]) {
			return Change{Kind: TasksEnd, Tasks: slices.Clone(own[i : i+1])}, true
		}
	}
	if len(own) == 0 || !l.startsWithout(all, stakes) {
		return Change{}, false
	}
	few := sort.Search(len(own)-1, func(i int) bool { return l.startsWithout(all, stakes[:i+1]) }) + 1
	return Change{Kind: TasksEnd, Tasks: slices.Clone(own[:few])}, true
}

// higher is the lowest class that there is in which the task would have others
// stopped for it.
func (l *ledger) higher(t Task, all []demand, failed int, need quota.FlavorResourceQuantities, v Verdict) (Change, bool) {
	ranks := slices.DeleteFunc(slices.Clone(l.c.Ranks), func(c Class) bool { return c.Priority <= t.Priority })
	slices.SortFunc(ranks, func(a, b Class) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	ranks = slices.CompactFunc(ranks, func(a, b Class) bool { return a.Priority == b.Priority })
	stops := func(i int) ([]*stake, bool) {
		t.Priority = ranks[i].Priority
		_, stopped, chance := l.makeRoom(t, all, failed, need, v.Flavors)
		return stopped, chance == sure
	}
	lowest := sort.Search(len(ranks), func(i int) bool { _, ok := stops(i); return ok })
	if lowest == len(ranks) {
		return Change{}, false
	}
	stopped, _ := stops(lowest)
	return Change{Kind: HigherClass, Class: ranks[lowest].Name, Priority: ranks[lowest].Priority, Tasks: slices.Concat(l.holders(stopped, true), l.holders(stopped, false))}, true
}

// raised is how far the borrowing limit, or the quota, would have to go up in
// the flavor that comes nearest.
func (l *ledger) raised(all []demand, v Verdict, kind Kind) (Change, bool) {
	q, change := l.c.Queue, Change{Kind: kind}
	for _, f := range v.Flavors {
		if f.Flavor != v.Decides.Flavor {
			continue
		}
		for _, s := range f.Shortages {
			limit := q.Limits[s.FlavorResource]
			figure := Figure{FlavorResource: s.FlavorResource}
			switch {
			case kind == MoreQuota:
				figure.From, figure.To = limit.Nominal, limit.Nominal+s.Short()
				limit.Nominal = figure.To
				if limit.Lend != nil && *limit.Lend > limit.Nominal {
					limit.Lend = &limit.Nominal
				}
			case limit.Borrow == nil || !q.inCohort():
				return Change{}, false
			default:
				figure.From, figure.To = *limit.Borrow, *limit.Borrow+s.Short()
				limit.Borrow = &figure.To
			}
			l.limit(s.FlavorResource, limit)
			defer l.limit(s.FlavorResource, q.Limits[s.FlavorResource])
			change.To = append(change.To, figure)
		}
	}
	return change, l.starts(all)
}
