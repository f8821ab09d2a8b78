package tasks

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Loop is a preemption loop: Kueue preempts one Workload again and again for
// another, which it never admits. Since and Last are the first and the latest
// preemption, by Kueue's conditions, in whole seconds.
//
// Runs and waits of the Workload that began at or after Since and ended at or
// before Last are no work and no queueing: averages and longest times leave them
// out. The run that the first preemption ended began before Since, and counts.
type Loop struct {
	Namespace   string
	WorkloadUID types.UID // the Workload that is preempted
	Since, Last time.Time
	// Runs is how many runs the loop ended after the first one, by Kueue's own
	// count of preemptions. NoteLoop computes it.
	Runs int32
}

// covers reports whether a time that a Workload waited or ran is of the loop.
func (l *Loop) covers(began, ended time.Time) bool {
	return began.Unix() >= l.Since.Unix() && ended.Unix() <= l.Last.Unix()
}

// has reports whether a moment is within the loop.
func (l *Loop) has(at time.Time) bool {
	return at.Unix() >= l.Since.Unix() && at.Unix() <= l.Last.Unix()
}

// loop is a Loop with Kueue's count of preemptions at its begin and its end; 0
// where that is not known.
type loop struct {
	Loop
	first, last int32
}

// NoteLoop corrects averages and longest times for a preemption loop. It is called
// when the loop is detected, and again as it goes on: a loop that overlaps one of
// the same Workload extends that. A Workload that is not known is ignored.
func (s *Service) RecordLoop(l Loop) {
	if s.index.noteLoop(l) && s.index.notify != nil {
		s.index.notify()
	}
}

func (x *Index) noteLoop(l Loop) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.taskOf(l.Namespace, l.WorkloadUID)
	if t == nil || l.Last.Before(l.Since) {
		return false
	}
	known := x.loops[l.WorkloadUID]
	i := slices.IndexFunc(known, func(k *loop) bool { return k.has(l.Since) || k.has(l.Last) || l.has(k.Since) })
	if i < 0 {
		i = len(known)
		l.Runs = 0
		known = append(known, &loop{Loop: l})
		x.loops[l.WorkloadUID] = known
	}
	k := known[i]
	k.Since, k.Last = earliest(k.Since, l.Since), latest(k.Last, l.Last)
	x.measureLoops(t)
	for key, y := range x.classes { // its class may have been another
		if key.namespace == t.Namespace {
			y.waits.leaveOut(k)
			y.runs.leaveOut(k)
		}
	}
	x.recording.note(x, t, t)
	return true
}

// taskOf is the task that a Workload of a namespace belongs to; nil for none.
func (x *Index) taskOf(namespace string, part types.UID) *Task {
	key, ok := x.group[part]
	if !ok || key.namespace != namespace {
		return nil
	}
	return x.tasks[key]
}

// measureLoops counts the runs that loops of a task ended. Kueue's count is exact
// where its conditions are not: several preemptions fall into one second.
func (x *Index) measureLoops(t *Task) {
	if len(x.loops) == 0 {
		return
	}
	for _, w := range t.Parts {
		for _, l := range x.loops[w.UID] {
			l.measure(x.steps(t, x.life.pasts[groupKey{t.Namespace, t.UID}]))
		}
	}
}

func (l *loop) measure(steps []step) {
	for _, s := range steps {
		if s.part != l.WorkloadUID || s.Type != WasPreempted || s.AtOrBefore || s.PreemptionCount == 0 || !l.has(s.At) {
			continue
		}
		if l.first == 0 || s.PreemptionCount < l.first {
			l.first = s.PreemptionCount
		}
		l.last = max(l.last, s.PreemptionCount)
	}
	l.Runs = max(0, l.last-l.first)
}

// inLoop reports whether a time that a Workload waited or ran is of a loop.
func (x *Index) inLoop(part types.UID, began, ended time.Time) bool {
	return slices.ContainsFunc(x.loops[part], func(l *loop) bool { return l.covers(began, ended) })
}

// loopsOf are the loops of a task, those of its newest Workload first.
func (x *Index) loopsOf(t *Task) (found []Loop) {
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

// NoteStep adds a step to the life of the task that a Workload belongs to: one
// that Kueue's conditions do not tell, such as WasHeld. What, At and the Workload
// tell steps apart, in whole seconds: the same step is added once. A Workload
// that is not known is ignored.
func (s *Service) RecordEvent(namespace string, part types.UID, e Event) {
	if s.index.noteStep(namespace, part, e) && s.index.notify != nil {
		s.index.notify()
	}
}

func (x *Index) noteStep(namespace string, part types.UID, e Event) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.taskOf(namespace, part)
	if t == nil {
		return false
	}
	p := x.pastOf(t)
	if slices.ContainsFunc(p.steps, func(s step) bool {
		return s.part == part && s.Type == e.Type && s.At.Unix() == e.At.Unix()
	}) {
		return false
	}
	if e.Ran == 0 {
		e.Ran = unknown
	}
	if e.Preemptor != nil { // its address is enough
		e.Preemptor = &Task{Namespace: e.Preemptor.Namespace, Kind: e.Preemptor.Kind, Name: e.Preemptor.Name, UID: e.Preemptor.UID}
		e.PreemptorUID = e.Preemptor.UID
	}
	e.WorkloadUID = string(part)
	p.add(step{Event: e, part: part})
	x.recording.note(x, t, t)
	return true
}

// apart is how far apart two preemptions for the same task may be to be told as
// one line.
const apart = time.Minute

// Repeats reports whether a preemption repeats another that came before it: of the
// same Workload, for the same task, within a minute.
func (e *Event) Repeats(before *Event) bool {
	return e.Type == WasPreempted && before.Type == WasPreempted && !e.AtOrBefore && !before.AtOrBefore &&
		e.WorkloadUID == before.WorkloadUID && e.PreemptorUID == before.PreemptorUID && (e.Omitted > 0 || e.At.Unix()-before.At.Unix() <= int64(apart/time.Second))
}

// add remembers a step. Where there are too many, the oldest preemptions that
// repeat one another become fewer, so that a loop pushes nothing else out; without
// any, the oldest step is forgotten.
func (p *past) add(s step) {
	p.steps = append(p.steps, s)
	if len(p.steps) > pastLength && !p.fold() {
		p.steps = bounded(p.steps)
	}
}

// fold forgets the second of the first three preemptions that repeat one another,
// with what led to it. The third has it in Omitted.
func (p *past) fold() bool {
	for i := range p.steps {
		second := p.repeat(i)
		if second < 0 {
			continue
		}
		third := p.repeat(second)
		if third < 0 {
			continue
		}
		into, part := &p.steps[third], p.steps[i].part
		into.Omitted += 1 + p.steps[second].Omitted
		into.OmittedRan += p.steps[second].OmittedRan
		kept := p.steps[:i+1]
		for k := i + 1; k < len(p.steps); k++ {
			s := p.steps[k]
			if k > second || s.part != part || !s.Type.between() && k != second {
				kept = append(kept, s)
				continue
			}
			if s.Type == WasAdmitted && s.Ran > 0 {
				into.OmittedRan += s.Ran
			}
		}
		clear(p.steps[len(kept):])
		p.steps = kept
		return true
	}
	return false
}

// repeat is the place of the preemption that repeats the one at i; -1 for none.
func (p *past) repeat(i int) int {
	first := &p.steps[i]
	if first.Type != WasPreempted {
		return -1
	}
	for k := i + 1; k < len(p.steps); k++ {
		switch s := &p.steps[k]; {
		case s.part != first.part || s.Type.between() || !s.Type.Lost() && s.Type != WasFinished:
		case s.by == first.by && s.repeats(first):
			return k
		default:
			return -1
		}
	}
	return -1
}

// repeats is Repeats for steps, which have their parts and others beside them.
func (s *step) repeats(before *step) bool {
	a, b := s.Event, before.Event
	a.WorkloadUID, b.WorkloadUID, a.PreemptorUID, b.PreemptorUID = "", "", "", ""
	return a.Repeats(&b)
}

// between reports whether it happens between one preemption and the next.
func (h EventType) between() bool {
	return h == WasReserved || h == WasAdmitted || h == WasReady || h == WasRequeued
}

// preemptions is how often Kueue preempted a Workload.
func preemptions(w *kueue.Workload) (n int32) {
	for _, e := range evictions(w) {
		if e.Reason == kueue.WorkloadEvictedByPreemption {
			n += e.Count
		}
	}
	return n
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
