package index

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"
)

// PageSize is the number of tasks on a page of a list.
const PageSize = 100

// PageOf returns the page of n tasks that is nearest to a number, from 1, the last page,
// and which tasks are on it. All are on one page.
func PageOf(n, number int, all bool) (page, pages, from, to int) {
	size := PageSize
	if all {
		size = max(1, n)
	}
	pages = max(1, (n+size-1)/size)
	page = min(max(number, 1), pages)
	return page, pages, (page - 1) * size, min(page*size, n)
}

// Phase selects tasks by whether they finished; empty selects all.
type Phase string

// The phases of tasks.
const (
	Active   Phase = "active"   // not finished
	Finished Phase = "finished" // succeeded or failed
)

// has reports whether the phase has tasks in a state.
func (p Phase) has(s tasks.State) bool { return p == "" || (p == Finished) == s.Finished() }

// Query selects and sorts the tasks of a list. A task must match one value of each
// filter; a filter without values matches all.
type Query struct {
	PriorityClasses []string // as their objects are named; "" is those without one
	States          []tasks.State
	Kinds           []string
	Pools           []string
	UIDs            map[string]bool
	SubmittedBy     string // user; empty for all
	Text            string // in the name, the namespace, the class, the labels or who submitted it, in any case
	Sort            Column // BySubmitted if empty
	Descending      bool
	Page            int // from 1
	Phase           Phase
	All             bool // all pages in one
	// Explain sets Item.Brief of each task. Patience is how long the list waits for
	// verdicts that are not computed yet; streams do not wait, since they are
	// notified.
	Explain  bool
	Patience time.Duration
	// Within selects the waits and runs of figures by priority class: those that
	// completed in the last so much, up to a day; 0 is since the console started.
	Within time.Duration
}

// Filtered reports whether the query excludes any task of its phase.
func (q Query) Filtered() bool {
	return len(q.PriorityClasses)+len(q.States)+len(q.Kinds)+len(q.Pools)+len(q.UIDs) > 0 || q.SubmittedBy != "" || q.Text != ""
}

// matchesState reports whether the query selects tasks in a state.
func (q Query) matchesState(s tasks.State) bool {
	return q.Phase.has(s) && (len(q.States) == 0 || slices.Contains(q.States, s))
}

// matchesButState reports whether the query selects a task, whatever its state.
func (q Query) matchesButState(t *tasks.Task) bool {
	if len(q.UIDs) > 0 && !q.UIDs[t.UID] {
		return false
	}
	if len(q.PriorityClasses) > 0 && !slices.Contains(q.PriorityClasses, t.PriorityClass) ||
		len(q.Kinds) > 0 && !slices.Contains(q.Kinds, t.Kind) || q.SubmittedBy != "" && t.SubmittedBy != q.SubmittedBy {
		return false
	}
	if len(q.Pools) > 0 && !slices.ContainsFunc(t.Pools, func(p string) bool { return slices.Contains(q.Pools, p) }) {
		return false
	}
	return q.Text == "" || containsFold(t.Name, q.Text) || containsFold(t.Namespace, q.Text) || containsFold(t.PriorityClass, q.Text) || containsFold(t.SubmittedBy, q.Text) || containsFold(t.Labels, q.Text)
}

// containsFold reports whether text contains lower, which is in lower case, in any
// case. Names of Kubernetes are in lower case nearly always.
func containsFold(text, lower string) bool {
	return strings.Contains(text, lower) || strings.Contains(strings.ToLower(text), lower)
}

// Result is one page of the tasks that a query selects. Its slices have one element
// per task of the page.
type Result struct {
	Tasks           []*tasks.Task
	Positions       []int  // of each task of the page in its queue, from 1; 0 for none
	UnscheduledPods []int  // pods of each that wait for a node
	PodsMissing     []bool // the task lacks pods, or nodes for them
	Total           int
	Phases          map[Phase]int       // how many the query selects in each, of whatever state
	States          map[tasks.State]int // the same by state
	Page, Pages     int                 // of the page, and of the last page
}

// states counts all tasks by their state.
func (x *Index) states() map[tasks.State]int {
	states := map[tasks.State]int{}
	for _, y := range x.everywhere {
		for state, n := range y.states {
			states[state] += n
		}
	}
	return states
}

// phases sums up states.
func phases(states map[tasks.State]int) map[Phase]int {
	all := map[Phase]int{}
	for state, n := range states {
		if Finished.has(state) {
			all[Finished] += n
		} else {
			all[Active] += n
		}
	}
	return all
}

// matching returns the tasks of a list that the query selects, in their order, and
// how many it would select of each state.
func (q Query) matching(list []*tasks.Task) (taken []*tasks.Task, states map[tasks.State]int) {
	states = map[tasks.State]int{}
	filtered := q.Filtered()
	for _, t := range list {
		if filtered && !q.matchesButState(t) {
			continue
		}
		states[t.State]++
		if q.matchesState(t.State) {
			taken = append(taken, t)
		}
	}
	return taken, states
}

// Query answers a query about the tasks of the places that in accepts; nil is all.
func (x *Index) Query(q Query, in func(tasks.Place) bool) Result {
	if columns[q.Sort] == nil {
		q.Sort = BySubmitted
	}
	q.Text = strings.ToLower(strings.TrimSpace(q.Text))
	now := x.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	var sorted []*tasks.Task
	whole := false // sorted has the phase and nothing else
	switch {
	case in != nil: // a team's tasks, whatever the others have
		for t := range x.tasksIn(in) {
			sorted = append(sorted, t)
		}
		slices.SortFunc(sorted, compare(q.Sort, now))
	case clocks[q.Sort] != nil:
		sorted = x.orderedByDuration(q.Sort, now)
	case q.Sort == ByPosition:
		sorted = x.all(BySubmitted)
	case q.Filtered():
		sorted = x.all(q.Sort)
	default: // the default page: a change costs what its own task costs
		sorted, whole = x.ordered(q.Sort+Column(q.Phase), func(t *tasks.Task) bool { return q.Phase.has(t.State) }, q.Sort), true
	}
	if q.Sort == ByPosition {
		sorted = x.byPosition(sorted, q.Descending)
	}
	f := Result{}
	if whole {
		f.States = x.states()
	} else {
		sorted, f.States = q.matching(sorted)
	}
	f.Phases = phases(f.States)
	f.Total = len(sorted)
	var from, to int
	f.Page, f.Pages, from, to = PageOf(f.Total, q.Page, q.All)
	for i := from; i < to; i++ {
		t := sorted[i]
		if q.Descending {
			t = sorted[f.Total-1-i]
		}
		place, _ := x.position(t)
		unplaced, missing := 0, false
		if t.State.UsesQuota() {
			_, count := x.countPods(t)
			unplaced = count.Unscheduled
			missing = x.podsComplete && (unplaced > 0 || count.Total+count.Ended < int(t.Size.Admitted))
		}
		f.Tasks, f.Positions = append(f.Tasks, t), append(f.Positions, place)
		f.UnscheduledPods, f.PodsMissing = append(f.UnscheduledPods, unplaced), append(f.PodsMissing, missing)
	}
	return f
}

// Tasks returns all tasks, in no order.
func (x *Index) Tasks() []*tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.AppendSeq(make([]*tasks.Task, 0, len(x.tasks)), maps.Values(x.tasks))
}

// tasksIn returns the tasks of the places that in accepts, in no order.
func (x *Index) tasksIn(in func(tasks.Place) bool) iter.Seq[*tasks.Task] {
	return func(yield func(*tasks.Task) bool) {
		for place, of := range x.places {
			if !in(place) {
				continue
			}
			for t := range of {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// Choices returns the kinds and the pools of the tasks of the places that in accepts,
// sorted; nil is all.
func (x *Index) Choices(in func(tasks.Place) bool) (kinds, pools []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if in == nil {
		return slices.Sorted(maps.Keys(x.kinds)), slices.Sorted(maps.Keys(x.pools))
	}
	ofKind, ofPool := map[string]bool{}, map[string]bool{}
	for t := range x.tasksIn(in) {
		ofKind[t.Kind] = true
		for _, pool := range t.Pools {
			ofPool[pool] = true
		}
	}
	return slices.Sorted(maps.Keys(ofKind)), slices.Sorted(maps.Keys(ofPool))
}
