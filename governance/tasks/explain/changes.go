package explain

import (
	"cmp"
	"maps"
	"slices"
)

// Kind is what somebody could change.
type Kind string

// What would start a task, each by itself.
const (
	FewerPods   Kind = "FewerPods"   // run with fewer pods
	TasksEnd    Kind = "TasksEnd"    // these tasks end
	BorrowLimit Kind = "BorrowLimit" // the team may borrow more
	MoreQuota   Kind = "MoreQuota"   // the team gets more quota
	HigherClass Kind = "HigherClass" // a class that outranks these tasks
)

// Change is one change that would start a task.
type Change struct {
	Kind     Kind
	Pods     int32    // FewerPods: that would start now
	Tasks    []Holder // TasksEnd, HigherClass
	Priority int32    // HigherClass: at least
	To       []Figure // BorrowLimit, MoreQuota: what each would have to be
}

// Figure is an amount of one cell.
type Figure struct {
	Cell
	From, To int64 // From is -1 for a limit that there is not
}

// changes looks for single changes that start a task, by trying each on a copy
// of the cluster.
func changes(t Task, c *Cluster, v Verdict) (found []Change) {
	if change, ok := fewer(t, c); ok {
		found = append(found, change)
	}
	if v.Constraint == Quota {
		if change, ok := ending(t, c, v); ok {
			found = append(found, change)
		}
		if change, ok := higher(t, c, v); ok {
			found = append(found, change)
		}
	}
	if change, ok := raised(t, c, v, BorrowLimit); ok {
		found = append(found, change)
	}
	if change, ok := raised(t, c, v, MoreQuota); ok {
		found = append(found, change)
	}
	return found
}

// startsWithout tells whether a task would start if Kueue stopped these.
func startsWithout(t Task, c *Cluster, lower []Holder) bool {
	_, ok := free(t, c, lower, TasksEnd)
	return ok
}

func starts(t Task, c *Cluster) bool { _, ok := place(t, c); return ok }

// fewer is how many pods of a task with one pod set would start.
func fewer(t Task, c *Cluster) (Change, bool) {
	if len(t.PodSets) != 1 {
		return Change{}, false
	}
	few := t
	few.PodSets = slices.Clone(t.PodSets)
	low, high := int32(0), t.PodSets[0].Least // low starts, high does not
	for high-low > 1 {
		middle := low + (high-low)/2
		few.PodSets[0].Count, few.PodSets[0].Least = middle, middle
		if starts(few, c) {
			low = middle
		} else {
			high = middle
		}
	}
	return Change{Kind: FewerPods, Pods: low}, low > 0
}

// without is the cluster without some tasks.
func (c *Cluster) without(gone []Holder) *Cluster {
	changed := *c
	changed.Queues = maps.Clone(c.Queues)
	for _, h := range gone {
		q := changed.Queues[h.Queue]
		if q == nil {
			continue
		}
		copied := *q
		copied.Used = maps.Clone(q.Used)
		for cell, amount := range h.Holds {
			copied.Used[cell] -= amount
		}
		changed.Queues[h.Queue] = &copied
	}
	changed.Queue = changed.Queues[c.Queue.Name]
	return &changed
}

// ending is the fewest tasks of the own queue whose end would start the task:
// one that is large enough, or the largest until it starts.
func ending(t Task, c *Cluster, v Verdict) (Change, bool) {
	return free(t, c, v.Decides.Own, TasksEnd)
}

func free(t Task, c *Cluster, candidates []Holder, kind Kind) (Change, bool) {
	for i := len(candidates) - 1; i >= 0; i-- { // the smallest first
		if one := candidates[i : i+1]; starts(t, c.without(one)) {
			return Change{Kind: kind, Tasks: slices.Clone(one)}, true
		}
	}
	for n := 2; n <= len(candidates); n++ {
		if starts(t, c.without(candidates[:n])) {
			return Change{Kind: kind, Tasks: slices.Clone(candidates[:n])}, true
		}
	}
	return Change{}, false
}

// higher is the least priority with which the task would push out enough tasks
// of its own queue.
func higher(t Task, c *Cluster, v Verdict) (Change, bool) {
	if c.Queue.WithinNever {
		return Change{}, false
	}
	own := slices.Clone(v.Decides.Own)
	slices.SortStableFunc(own, func(a, b Holder) int { return cmp.Compare(a.Priority, b.Priority) })
	for i := range own {
		if i+1 < len(own) && own[i+1].Priority == own[i].Priority {
			continue
		}
		if own[i].Priority < t.Priority {
			continue
		}
		lower := slices.DeleteFunc(slices.Clone(v.Decides.Own), func(h Holder) bool { return h.Priority > own[i].Priority })
		if change, ok := free(t, c, lower, HigherClass); ok {
			change.Priority = own[i].Priority + 1
			return change, true
		}
	}
	return Change{}, false
}

// raised is how far the borrowing limit, or the quota, would have to go up in
// the flavor that comes nearest.
func raised(t Task, c *Cluster, v Verdict, kind Kind) (Change, bool) {
	if v.Decides == nil {
		return Change{}, false
	}
	changed := c.without(nil)
	q := *changed.Queue
	q.Limits = maps.Clone(q.Limits)
	changed.Queues[q.Name], changed.Queue = &q, &q
	change := Change{Kind: kind}
	for _, f := range v.Flavors {
		if f.Flavor != v.Decides.Flavor {
			continue
		}
		for _, s := range f.Shortages {
			limit := q.Limits[s.Cell]
			figure := Figure{Cell: s.Cell}
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
			q.Limits[s.Cell] = limit
			change.To = append(change.To, figure)
		}
	}
	return change, starts(t, changed)
}

func (q *Queue) inCohort() bool { return q.Cohort != "" }
