package index

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/tasks"
)

// Column is a sort key of a list of tasks.
type Column string

// The columns of a list of tasks.
const (
	BySubmitted     Column = "submitted"
	ByName          Column = "name"
	ByState         Column = "status"
	ByTeam          Column = "team"
	ByPriorityClass Column = "class"
	ByKind          Column = "kind"
	ByAccelerator   Column = "accelerators"
	ByCPU           Column = "vcpu"
	ByMemory        Column = "memory"
	ByPool          Column = "pool"
	ByPreemptions   Column = "preemptions"
	ByWaited        Column = "waited"
	ByRan           Column = "ran"
	ByPosition      Column = "place" // across all queues; tasks outside of queues come last
)

// columns compare two tasks, the smaller first. Those of times that go on count
// up to now.
var columns = map[Column]func(a, b *tasks.Task, now time.Time) int{
	BySubmitted: func(a, b *tasks.Task, _ time.Time) int { return a.Submitted.Compare(b.Submitted) },
	ByName:      func(a, b *tasks.Task, _ time.Time) int { return strings.Compare(a.Name, b.Name) },
	ByState:     func(a, b *tasks.Task, _ time.Time) int { return cmp.Compare(stateRank[a.State], stateRank[b.State]) },
	ByTeam:      func(a, b *tasks.Task, _ time.Time) int { return strings.Compare(a.Namespace, b.Namespace) },
	ByPriorityClass: func(a, b *tasks.Task, _ time.Time) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.PriorityClass, b.PriorityClass))
	},
	ByKind: func(a, b *tasks.Task, _ time.Time) int { return strings.Compare(a.Kind, b.Kind) },
	ByAccelerator: func(a, b *tasks.Task, _ time.Time) int {
		return cmp.Compare(a.Resources().Accelerators(), b.Resources().Accelerators())
	},
	ByCPU: func(a, b *tasks.Task, _ time.Time) int {
		return cmp.Compare(a.Resources()[catalog.CPU], b.Resources()[catalog.CPU])
	},
	ByMemory: func(a, b *tasks.Task, _ time.Time) int {
		return cmp.Compare(a.Resources()[catalog.Memory], b.Resources()[catalog.Memory])
	},
	ByPool:        func(a, b *tasks.Task, _ time.Time) int { return slices.Compare(a.Pools, b.Pools) },
	ByPreemptions: func(a, b *tasks.Task, _ time.Time) int { return cmp.Compare(a.Preemptions, b.Preemptions) },
	ByWaited:      func(a, b *tasks.Task, now time.Time) int { return cmp.Compare(waited(a).at(now), waited(b).at(now)) },
	ByRan:         func(a, b *tasks.Task, now time.Time) int { return cmp.Compare(ran(a).at(now), ran(b).at(now)) },
	ByPosition:    func(a, b *tasks.Task, _ time.Time) int { return a.Submitted.Compare(b.Submitted) }, // of equals: see byPlace
}

// runningTime is a duration that is final, or still grows since a time.
type runningTime struct {
	length time.Duration // if since is zero
	since  time.Time
}

func (c runningTime) at(now time.Time) time.Duration {
	if c.since.IsZero() {
		return c.length
	}
	return now.Sub(c.since)
}

// clocks are the columns whose order changes by time alone.
var clocks = map[Column]func(t *tasks.Task) runningTime{ByWaited: waited, ByRan: ran}

func waited(t *tasks.Task) runningTime { return runningTime{t.LastWait, t.WaitingSince} }

func ran(t *tasks.Task) runningTime {
	switch {
	case t.AdmittedAt.IsZero():
		return runningTime{length: t.RanBefore}
	case !t.FinishedAt.IsZero():
		return runningTime{length: t.RanBefore + t.FinishedAt.Sub(t.AdmittedAt)}
	}
	return runningTime{since: t.AdmittedAt.Add(-t.RanBefore)}
}

// orderedByDuration merges two lists whose order does not change by time: of tasks
// whose duration grows, and of those whose duration is final.
func (x *Index) orderedByDuration(column Column, now time.Time) []*tasks.Task {
	clock := clocks[column]
	going := x.ordered(column+" goes on", func(t *tasks.Task) bool { return !clock(t).since.IsZero() }, column)
	still := x.ordered(column+" stands still", func(t *tasks.Task) bool { return clock(t).since.IsZero() }, column)
	less, all := compare(column, now), make([]*tasks.Task, 0, len(going)+len(still))
	for len(going) > 0 && len(still) > 0 {
		if less(going[0], still[0]) < 0 {
			all, going = append(all, going[0]), going[1:]
		} else {
			all, still = append(all, still[0]), still[1:]
		}
	}
	return append(append(all, going...), still...)
}

var stateRank = func() map[tasks.State]int {
	ranks := map[tasks.State]int{}
	for i, s := range tasks.States {
		ranks[s] = i
	}
	return ranks
}()

// compare orders by a column, then the newest first, then by name, so that orders
// are stable.
func compare(column Column, now time.Time) func(a, b *tasks.Task) int {
	by := columns[column]
	return func(a, b *tasks.Task) int {
		return cmp.Or(by(a, b, now), b.Submitted.Compare(a.Submitted), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	}
}

// byPreemptionOrder orders tasks that use quota the way Kueue picks preemption
// candidates of other ClusterQueues, see explain.AdmittedWorkload.Compare.
func byPreemptionOrder(a, b *tasks.Task) int {
	return a.AdmittedWorkloads[0].Compare(&b.AdmittedWorkloads[0])
}

// order keeps tasks sorted. Changes are merged on the next read, so that a change
// costs nothing by itself, and a returned list never changes. A merge compares only
// around what changed.
type order struct {
	compare func(a, b *tasks.Task) int
	takes   func(t *tasks.Task) bool // nil accepts all
	sorted  []*tasks.Task
	added   map[*tasks.Task]struct{}
	removed map[*tasks.Task]struct{}
}

func newOrder(compare func(a, b *tasks.Task) int) *order {
	return &order{compare: compare, added: map[*tasks.Task]struct{}{}, removed: map[*tasks.Task]struct{}{}}
}

func (o *order) put(t *tasks.Task) {
	if o.takes == nil || o.takes(t) {
		o.added[t] = struct{}{}
	}
}

func (o *order) remove(t *tasks.Task) {
	if o.takes != nil && !o.takes(t) {
		return
	}
	if _, fresh := o.added[t]; fresh {
		delete(o.added, t)
		return
	}
	o.removed[t] = struct{}{}
	if len(o.removed) > maxRemoved+len(o.sorted)/4 { // not read for long: drop deleted tasks
		o.list()
	}
}

// maxRemoved is how many removed tasks an order keeps at least until its next read.
const maxRemoved = 1000

func (o *order) empty() bool { return len(o.added) == 0 && len(o.sorted) == len(o.removed) }

// list returns all tasks in order: read only. nil has none.
func (o *order) list() []*tasks.Task {
	if o == nil {
		return nil
	}
	if len(o.added) == 0 && len(o.removed) == 0 {
		return o.sorted
	}
	added := make([]*tasks.Task, 0, len(o.added))
	for t := range o.added {
		added = append(added, t)
	}
	slices.SortFunc(added, o.compare)
	gone := make([]int, 0, len(o.removed))
	for t := range o.removed {
		if i := o.index(t); i >= 0 {
			gone = append(gone, i)
		}
	}
	slices.Sort(gone)
	merged, at := make([]*tasks.Task, 0, len(o.sorted)+len(added)-len(gone)), 0
	keep := func(end int) { // appends what stays of sorted, from at to end
		for len(gone) > 0 && gone[0] < end {
			merged = append(merged, o.sorted[at:gone[0]]...)
			at, gone = gone[0]+1, gone[1:]
		}
		merged = append(merged, o.sorted[at:end]...)
		at = end
	}
	for _, t := range added {
		before, _ := slices.BinarySearchFunc(o.sorted[at:], t, o.compare)
		keep(at + before)
		merged = append(merged, t)
	}
	keep(len(o.sorted))
	o.sorted = merged
	clear(o.added)
	clear(o.removed)
	return o.sorted
}

// index returns the index of a task in sorted; -1 if it is not there.
func (o *order) index(t *tasks.Task) int {
	i, _ := slices.BinarySearchFunc(o.sorted, t, o.compare)
	if behind := slices.Index(o.sorted[i:], t); behind >= 0 { // its equals are before it
		return i + behind
	}
	return -1
}
