package index

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/types"
)

// loop is a Loop with Kueue's count of preemptions at its begin and its end; 0 if
// unknown.
type loop struct {
	timeline.Loop
	first, last int32
}

// RecordLoop excludes a preemption loop from averages and longest times. It is
// called when the loop is detected, and again while it goes on: a loop that
// overlaps one of the same Workload extends that. Unknown Workloads are ignored.
func (x *Index) RecordLoop(l timeline.Loop) {
	if x.recordLoop(l) {
		x.notifyListeners()
	}
}

func (x *Index) recordLoop(l timeline.Loop) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.taskOf(l.Namespace, l.WorkloadUID)
	if t == nil || l.Last.Before(l.Since) {
		return false
	}
	known := x.loops[l.WorkloadUID]
	i := slices.IndexFunc(known, func(k *loop) bool { return k.Contains(l.Since) || k.Contains(l.Last) || l.Contains(k.Since) })
	if i < 0 {
		i = len(known)
		l.Runs = 0
		known = append(known, &loop{Loop: l})
		x.loops[l.WorkloadUID] = known
	}
	k := known[i]
	k.Since = slices.MinFunc([]time.Time{k.Since, l.Since}, time.Time.Compare)
	k.Last = slices.MaxFunc([]time.Time{k.Last, l.Last}, time.Time.Compare)
	x.measureLoops(t)
	exclude := func(y *tally) {
		y.waits.exclude(k)
		y.runs.exclude(k)
	}
	for key, y := range x.classes { // its priority class may have changed
		if key.Namespace == t.Namespace {
			exclude(y)
		}
	}
	for _, y := range x.everywhere {
		exclude(y)
	}
	x.recording.note(x, t, t)
	return true
}

// notifyListeners notifies the streams of a change that no watched object causes.
// It is called without the lock.
func (x *Index) notifyListeners() {
	if x.notify != nil {
		x.notify()
	}
}

// taskOf returns the task of a Workload in a namespace; nil for none.
func (x *Index) taskOf(namespace string, workload types.UID) *tasks.Task {
	key, ok := x.group[workload]
	if !ok || key.Namespace != namespace {
		return nil
	}
	return x.tasks[key]
}

// measureLoops counts the runs that the loops of a task ended. Kueue's count is exact
// where its conditions are not: several preemptions may fall into one second.
func (x *Index) measureLoops(t *tasks.Task) {
	if len(x.loops) == 0 {
		return
	}
	for _, w := range t.Parts {
		for _, l := range x.loops[w.UID] {
			l.measure(x.timeline(t))
		}
	}
}

func (l *loop) measure(events []timeline.Event) {
	for _, e := range events {
		if e.WorkloadUID != string(l.WorkloadUID) || e.Type != timeline.Preempted || e.AtOrBefore || e.PreemptionCount == 0 || !l.Contains(e.At) {
			continue
		}
		if l.first == 0 || e.PreemptionCount < l.first {
			l.first = e.PreemptionCount
		}
		l.last = max(l.last, e.PreemptionCount)
	}
	l.Runs = max(0, l.last-l.first)
}

// inLoop reports whether a wait or run of a Workload belongs to a loop.
func (x *Index) inLoop(workload types.UID, began, ended time.Time) bool {
	return slices.ContainsFunc(x.loops[workload], func(l *loop) bool { return l.Covers(began, ended) })
}

// loopsOf returns the loops of a task, those of its newest Workload first.
func (x *Index) loopsOf(t *tasks.Task) (found []timeline.Loop) {
	if len(x.loops) == 0 {
		return nil
	}
	for _, w := range t.Parts {
		for _, l := range x.loops[w.UID] {
			found = append(found, l.Loop)
		}
	}
	return found
}

// RecordEvent adds an event to the timeline of the task of a Workload, see
// Past.Record. Unknown Workloads are ignored.
func (x *Index) RecordEvent(namespace string, workload types.UID, e timeline.Event) {
	if x.recordEvent(namespace, workload, e) {
		x.notifyListeners()
	}
}

func (x *Index) recordEvent(namespace string, workload types.UID, e timeline.Event) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.taskOf(namespace, workload)
	if t == nil {
		return false
	}
	past, added := x.life.pasts[t.Key()].Record(workload, e)
	if !added {
		return false
	}
	x.life.pasts[t.Key()] = past
	x.recording.note(x, t, t)
	return true
}
