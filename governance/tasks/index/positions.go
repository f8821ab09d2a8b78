package index

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// CountAhead returns how many tasks of a queue a new one of a priority would queue
// behind: those of the same or a higher priority.
func (x *Index) CountAhead(namespace, queue string, priority int32) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.queues[QueueKey{namespace, queue}].list()
	return sort.Search(len(list), func(i int) bool { return list[i].Priority < priority })
}

// InQueue is Kueue's order of a queue (0.19): the higher priority first, then the
// longer wait, then the UID. After most evictions a task keeps the position of its
// creation; after its pods did not get ready, or a check failed, it queues at the
// end.
func InQueue(a, b *tasks.Task) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		QueuedAt(a).Compare(QueuedAt(b)),
		strings.Compare(string(a.Main.UID), string(b.Main.UID)),
	)
}

// QueuedAt returns the time by which Kueue orders tasks of the same priority.
func QueuedAt(t *tasks.Task) time.Time {
	for _, c := range t.Main.Status.Conditions {
		if c.Type == kueue.WorkloadEvicted && c.Status == "True" && (c.Reason == kueue.WorkloadEvictedByPodsReadyTimeout || c.Reason == kueue.WorkloadEvictedByAdmissionCheck) {
			return c.LastTransitionTime.Time
		}
	}
	return t.Main.CreationTimestamp.Time
}

// Position returns the position of a task in its LocalQueue, from 1, and the length
// of the queue; 0 if it does not wait.
func (x *Index) Position(t *tasks.Task) (place, of int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.position(t)
}

// position is Position while x.mu is locked.
func (x *Index) position(t *tasks.Task) (place, of int) {
	if !t.Queued() {
		return 0, 0
	}
	list := x.queues[QueueKey{t.Namespace, t.Queue}].list()
	before, _ := slices.BinarySearchFunc(list, t, InQueue)
	if before == len(list) || list[before] != t {
		return 0, 0 // t is outdated
	}
	return before + 1, len(list)
}

// byPosition sorts tasks by their positions in their queues; ties keep their order.
// Tasks outside of queues come last, also if the list is read backwards.
func (x *Index) byPosition(sorted []*tasks.Task, backwards bool) []*tasks.Task {
	places := map[*tasks.Task]int{}
	for _, o := range x.queues {
		for i, t := range o.list() {
			places[t] = i + 1
		}
	}
	list, others := make([]*tasks.Task, 0, len(sorted)), make([]*tasks.Task, 0, len(sorted))
	for _, t := range sorted {
		if places[t] > 0 {
			list = append(list, t)
		} else {
			others = append(others, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *tasks.Task) int { return cmp.Compare(places[a], places[b]) })
	if backwards {
		return append(others, list...)
	}
	return append(list, others...)
}

// Positioned is a task with its position in its queue.
type Positioned struct {
	Task     *tasks.Task
	Position int
}

// Heads returns the first n tasks of the LocalQueues that in accepts, by their
// positions, and the length of all these queues.
func (x *Index) Heads(in func(QueueKey) bool, n int) (list []Positioned, of int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, o := range x.queues {
		if !in(key) {
			continue
		}
		waiting := o.list()
		of += len(waiting)
		for i, t := range waiting[:min(n, len(waiting))] {
			list = append(list, Positioned{t, i + 1})
		}
	}
	slices.SortFunc(list, func(a, b Positioned) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), strings.Compare(a.Task.Queue, b.Task.Queue), strings.Compare(a.Task.Namespace, b.Task.Namespace))
	})
	return list[:min(n, len(list))], of
}

// Waiting returns the tasks that wait in the LocalQueues that in selects, each in its
// order: read only.
func (x *Index) Waiting(in func(QueueKey) bool) map[QueueKey][]*tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	waiting := map[QueueKey][]*tasks.Task{}
	for key, o := range x.queues {
		if in(key) {
			waiting[key] = o.list()
		}
	}
	return waiting
}

// MergeQueues returns the tasks of several LocalQueues in the order of their ClusterQueue.
func MergeQueues(lists ...[]*tasks.Task) []*tasks.Task {
	if len(lists) == 1 {
		return lists[0]
	}
	merged := slices.Concat(lists...)
	slices.SortFunc(merged, InQueue)
	return merged
}

// around returns up to n tasks directly before and behind t in its LocalQueue.
func (x *Index) Neighbors(t *tasks.Task, n int) (before, behind []*tasks.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	place, of := x.position(t)
	if place == 0 {
		return nil, nil
	}
	list := x.queues[QueueKey{t.Namespace, t.Queue}].list()
	return slices.Clone(list[max(0, place-1-n) : place-1]), slices.Clone(list[place:min(of, place+n)])
}

// PositionAcross returns the position of a task among several queues, and their
// length; 0 for no queues.
func (x *Index) PositionAcross(t *tasks.Task, queues []QueueKey) (place, of int) {
	if len(queues) == 0 {
		return 0, 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	place = 1
	for _, key := range queues {
		list := x.queues[key].list()
		before, _ := slices.BinarySearchFunc(list, t, InQueue)
		place, of = place+before, of+len(list)
	}
	return place, of
}

// FirstWaiting returns the first task of several queues that waits with Kueue's reason; nil
// for none.
func (x *Index) FirstWaiting(queues []QueueKey, reason string) (first *tasks.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, key := range queues {
		list := x.queues[key].list()
		at := slices.IndexFunc(list, func(t *tasks.Task) bool { return t.Reason == reason })
		if at >= 0 && (first == nil || InQueue(list[at], first) < 0) {
			first = list[at]
		}
	}
	return first
}

// QueueChanged returns when the queue of a task last changed, as far as the index
// observed.
func (x *Index) QueueChanged(t *tasks.Task) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.life.positionLogs[QueueKey{t.Namespace, t.Queue}]; l != nil {
		return l.changedAt
	}
	return time.Time{}
}

// PendingTasks returns the tasks of Workloads that wait in the queue of t, in the
// order of the Workloads. Unknown Workloads are left out.
func (x *Index) PendingTasks(t *tasks.Task, workloads []visibility.PendingWorkload) []*tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := make([]*tasks.Task, len(workloads))
	for _, other := range x.queues[QueueKey{t.Namespace, t.Queue}].list() {
		for i := range workloads {
			if workloads[i].Name == other.Main.Name {
				found[i] = other
			}
		}
	}
	return slices.DeleteFunc(found, func(t *tasks.Task) bool { return t == nil })
}

// Supposed is the position of a task if it waited in its queue with a priority.
type Supposed struct {
	Priority              int32
	Position, QueueLength int         // in its LocalQueue, from 1, with itself
	Ahead                 *tasks.Task // directly before it; nil where it would be the first
	// Outranked counts the tasks of the queue that have a higher priority.
	Outranked int
	// Preempts reports that the queue preempts its tasks for one of a higher priority.
	Preempts bool
	// Verdict is why it would not start; nil for a task that uses quota, and for
	// one without a Workload.
	Verdict *explain.Verdict
}

// Head returns the first task in a LocalQueue; nil if none waits. The reader must be
// allowed to see the namespace.
func (x *Index) Head(namespace, queue string) *tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	if list := x.queues[QueueKey{namespace, queue}].list(); len(list) > 0 {
		return list[0]
	}
	return nil
}

func (x *Index) Suppose(t *tasks.Task, priority int32) Supposed {
	raised := *t
	raised.Priority = priority
	supposed := Supposed{Priority: priority, Position: 1, QueueLength: 1}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, other := range x.queues[QueueKey{t.Namespace, t.Queue}].list() {
		if other.UID == t.UID {
			continue
		}
		supposed.QueueLength++
		if other.Priority > priority {
			supposed.Outranked++
		}
		if InQueue(other, &raised) < 0 {
			supposed.Position++
			supposed.Ahead = other
		}
	}
	return supposed
}
