package tasks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// inQueue is Kueue's order of tasks that wait in one queue (0.19): the higher
// priority first, then who waits longer, then the UID. After most evictions a
// task keeps the place of its creation; after its pods did not get ready, or a
// check failed, it queues behind.
func inQueue(a, b *Task) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		queuedAt(a).Compare(queuedAt(b)),
		strings.Compare(string(a.main.UID), string(b.main.UID)),
	)
}

func queuedAt(t *Task) time.Time {
	for _, c := range t.main.Status.Conditions {
		if c.Type == kueue.WorkloadEvicted && c.Status == "True" && (c.Reason == kueue.WorkloadEvictedByPodsReadyTimeout || c.Reason == kueue.WorkloadEvictedByAdmissionCheck) {
			return c.LastTransitionTime.Time
		}
	}
	return t.main.CreationTimestamp.Time
}

// queued tells whether a task stands in a queue.
func (t *Task) queued() bool {
	_, held := t.Hold()
	return t.State.Waiting() && !t.NoWorkload && !held
}

// Place is where a task stands in its LocalQueue: see place.
func (x *Index) Position(t *Task) (place, of int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.place(t)
}

// place is where a task stands in its LocalQueue, from 1, and how many wait
// there; 0 while it does not wait.
func (x *Index) place(t *Task) (place, of int) {
	o := x.queues[queueKey{t.Namespace, t.Queue}]
	if o == nil || !t.queued() {
		return 0, 0
	}
	list := o.list()
	low, high := 0, len(list)
	for low < high { // the first that does not stand before t
		if middle := (low + high) / 2; inQueue(list[middle], t) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(list) || list[low] != t {
		return 0, 0 // t is older than the index
	}
	return low + 1, len(list)
}

// byPlace are sorted tasks by their places in their queues, equals as they were.
// Those that stand in none come last, also where the list is read backwards.
func (x *Index) byPlace(sorted []*Task, backwards bool) []*Task {
	places := map[*Task]int{}
	for _, o := range x.queues {
		for i, t := range o.list() {
			places[t] = i + 1
		}
	}
	list, others := make([]*Task, 0, len(sorted)), make([]*Task, 0, len(sorted))
	for _, t := range sorted {
		if places[t] > 0 {
			list = append(list, t)
		} else {
			others = append(others, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *Task) int { return cmp.Compare(places[a], places[b]) })
	if backwards {
		return append(others, list...)
	}
	return append(list, others...)
}

// placed is a task with its place in its queue.
type placed struct {
	task  *Task
	place int
}

// head are the first n tasks of the queues of some namespaces, by their places,
// and how many wait in all of them.
func (x *Index) head(in func(namespace string) bool, n int) (list []placed, of int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, o := range x.queues {
		if !in(key.namespace) {
			continue
		}
		waiting := o.list()
		of += len(waiting)
		for i, t := range waiting[:min(n, len(waiting))] {
			list = append(list, placed{t, i + 1})
		}
	}
	slices.SortFunc(list, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.place, b.place), strings.Compare(a.task.Queue, b.task.Queue), strings.Compare(a.task.Namespace, b.task.Namespace))
	})
	return list[:min(n, len(list))], of
}
