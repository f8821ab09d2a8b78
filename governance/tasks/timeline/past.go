package timeline

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// maxPast is how many steps, sizes and preemptors are kept of one task.
const maxPast = 20

// Past is what the Workloads of one task contained before Kueue overwrote it. Most
// tasks have none: nil is a task without.
type Past struct {
	overwritten []step
	lost        []lost
	sizes       []Resize
	preemptors  []knownPreemptor
}

// lost is a Workload that was deleted while its task went on.
type lost struct {
	*kueue.Workload
	at time.Time
}

// step is a condition that Kueue has overwritten.
type step struct {
	Event
	workload types.UID
	by       types.UID // the Workload that it was preempted for
}

// knownPreemptor is a task that preempted this one. A condition has its UID only, and
// it may be deleted when a reader opens the timeline.
type knownPreemptor struct {
	workload types.UID
	task     tasks.Task // its address and nothing else
}

// Tasks are the tasks that exist.
type Tasks interface {
	ByWorkload(uid types.UID) *tasks.Task // nil for none
	Exists(key tasks.Key) bool
}

// Update records in p what the Workloads of before contained and those of t do not,
// and returns p; a nil p is created when there is something to record. now is the
// time of a change that no condition dates.
func (p *Past) Update(before, t *tasks.Task, now time.Time, known Tasks) *Past {
	p = p.AddPreemptors(t, known)
	for _, w := range before.LostWorkloads(t) {
		if !t.IsServing() && !hasReason(w, kueue.WorkloadFinished, kueue.WorkloadSliceReplaced) {
			p = p.orNew()
			p.lost = bounded(append(p.lost, lost{w, now}))
		}
	}
	for _, old := range before.Parts {
		i := slices.IndexFunc(t.Parts, func(w *kueue.Workload) bool { return w.UID == old.UID })
		if i < 0 || t.Parts[i] == old || t.IsGrowth(old) {
			continue
		}
		w := t.Parts[i]
		for j := range old.Status.Conditions {
			c := &old.Status.Conditions[j]
			if conditionEvents[c.Type] == "" || c.Status != metav1.ConditionTrue || hasCondition(w, c) {
				continue
			}
			s := step{Event: eventOf(old, c), workload: w.UID, by: preemptor(c)}
			switch s.Type {
			case Ready: // too many to keep
				continue
			case Admitted:
				s.Ran = ranSince(old, w)
			case Preempted: // its reason and the preemptor say as much
				s.Message = ""
			}
			p = p.orNew()
			p.add(s)
		}
	}
	if r, changed := resized(before, t, now); changed {
		p = p.orNew()
		p.sizes = bounded(append(p.sizes, r))
	}
	return p
}

// AddPreemptors records the addresses of the tasks that t was preempted for, and
// returns p as Update does.
func (p *Past) AddPreemptors(t *tasks.Task, known Tasks) *Past {
	for _, w := range t.Parts {
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
		if c == nil || c.Status != metav1.ConditionTrue || t.IsGrowth(w) {
			continue
		}
		uid := preemptor(c)
		if uid == "" {
			continue
		}
		by := known.ByWorkload(uid)
		if by == nil {
			continue
		}
		p = p.orNew()
		if !slices.ContainsFunc(p.preemptors, func(k knownPreemptor) bool { return k.workload == uid }) {
			p.preemptors = bounded(append(p.preemptors, knownPreemptor{uid, *addressOnly(by)}))
		}
	}
	return p
}

// Record adds an event of a Workload that no condition contains, such as one of the
// loop guard. It returns p as Update does, and false for an event that p has:
// one of the same Workload, type and second.
func (p *Past) Record(workload types.UID, e Event) (*Past, bool) {
	p = p.orNew()
	if slices.ContainsFunc(p.overwritten, func(s step) bool {
		return s.workload == workload && s.Type == e.Type && s.At.Unix() == e.At.Unix()
	}) {
		return p, false
	}
	if e.Ran == 0 {
		e.Ran = Unknown
	}
	if e.Preemptor != nil {
		e.Preemptor = addressOnly(e.Preemptor)
		e.PreemptorUID = e.Preemptor.UID
	}
	e.WorkloadUID = string(workload)
	p.add(step{Event: e, workload: workload})
	return p, true
}

// preemptor returns the task of a Workload that preempted another, and whether it is
// deleted; nil if it is unknown.
func (p *Past) preemptor(workload types.UID, known Tasks) (t *tasks.Task, deleted bool) {
	if t := known.ByWorkload(workload); t != nil {
		return t, false
	}
	if p != nil {
		for i := range p.preemptors {
			if p.preemptors[i].workload == workload {
				t := p.preemptors[i].task
				return &t, true
			}
		}
	}
	return nil, false
}

// Len returns how many overwritten conditions p has.
func (p *Past) Len() int { return len(p.overwritten) }

func (p *Past) orNew() *Past {
	if p == nil {
		return &Past{}
	}
	return p
}

func addressOnly(t *tasks.Task) *tasks.Task {
	return &tasks.Task{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID}
}

// add adds a step. Where there are too many, the oldest repeated preemptions are
// folded, so that a loop displaces nothing else; without any, the oldest step is
// dropped.
func (p *Past) add(s step) {
	p.overwritten = append(p.overwritten, s)
	if len(p.overwritten) > maxPast && !p.fold() {
		p.overwritten = bounded(p.overwritten)
	}
}

// fold drops the second of the first three preemptions that repeat one another, with
// the steps that led to it, and adds it to Omitted of the third.
func (p *Past) fold() bool {
	for i := range p.overwritten {
		second := p.repetition(i)
		if second < 0 {
			continue
		}
		third := p.repetition(second)
		if third < 0 {
			continue
		}
		into, workload := &p.overwritten[third], p.overwritten[i].workload
		into.Omitted += 1 + p.overwritten[second].Omitted
		into.OmittedRan += p.overwritten[second].OmittedRan
		kept := p.overwritten[:i+1]
		for k := i + 1; k < len(p.overwritten); k++ {
			s := p.overwritten[k]
			if k > second || s.workload != workload || !s.Type.betweenPreemptions() && k != second {
				kept = append(kept, s)
				continue
			}
			if s.Type == Admitted && s.Ran > 0 {
				into.OmittedRan += s.Ran
			}
		}
		clear(p.overwritten[len(kept):])
		p.overwritten = kept
		return true
	}
	return false
}

// repetition returns the index of the preemption that repeats the one at i; -1 for
// none.
func (p *Past) repetition(i int) int {
	first := &p.overwritten[i]
	if first.Type != Preempted {
		return -1
	}
	for k := i + 1; k < len(p.overwritten); k++ {
		switch s := &p.overwritten[k]; {
		case s.workload != first.workload || s.Type.betweenPreemptions() || !s.Type.Lost() && s.Type != Finished:
		case s.by == first.by && s.repeats(first):
			return k
		default:
			return -1
		}
	}
	return -1
}

// repeats is Event.Repeats for steps, whose Workload and preemptor are compared by
// the caller.
func (s *step) repeats(before *step) bool {
	a, b := s.Event, before.Event
	a.WorkloadUID, b.WorkloadUID, a.PreemptorUID, b.PreemptorUID = "", "", "", ""
	return a.Repeats(&b)
}

// bounded drops the oldest elements beyond maxPast.
func bounded[S ~[]E, E any](list S) S {
	if len(list) > maxPast {
		return slices.Delete(list, 0, len(list)-maxPast)
	}
	return list
}

// hasCondition reports whether w still has a condition.
func hasCondition(w *kueue.Workload, c *metav1.Condition) bool {
	now := meta.FindStatusCondition(w.Status.Conditions, c.Type)
	return now != nil && now.Status == c.Status && now.LastTransitionTime.Equal(&c.LastTransitionTime) && now.Reason == c.Reason
}

// hasReason reports whether a condition of w is true for a reason.
func hasReason(w *kueue.Workload, condition, reason string) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, condition)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
}

// Lost returns the Workloads that were deleted while the task went on, and when.
func (p *Past) Lost() map[*kueue.Workload]time.Time {
	if p == nil || len(p.lost) == 0 {
		return nil
	}
	found := make(map[*kueue.Workload]time.Time, len(p.lost))
	for _, l := range p.lost {
		found[l.Workload] = l.at
	}
	return found
}

// ranSince returns how long a Workload ran in the admission that it lost, by Kueue's
// count; negative if Kueue does not count it.
func ranSince(old, w *kueue.Workload) time.Duration {
	if w.Status.AccumulatedPastExecutionTimeSeconds == nil {
		return Unknown
	}
	return accumulated(w) - accumulated(old)
}

func accumulated(w *kueue.Workload) time.Duration {
	if s := w.Status.AccumulatedPastExecutionTimeSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}
