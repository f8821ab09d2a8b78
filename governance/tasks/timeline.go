package tasks

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Happened is what Kueue did with a task.
type EventType string

// What happens to tasks.
const (
	WasSubmitted EventType = "Submitted"
	WasReserved  EventType = "Reserved" // got its quota
	WasAdmitted  EventType = "Admitted"
	WasReady     EventType = "Ready" // its pods
	WasPreempted EventType = "Preempted"
	WasEvicted   EventType = "Evicted"
	WasRequeued  EventType = "Requeued"
	WasFinished  EventType = "Finished"

	// What the loop guard does, which NoteStep adds.
	WasLooped   EventType = "Preemption loop"
	WasHeld     EventType = "Held by the loop guard"
	WasReleased EventType = "Released by the loop guard"
)

// unknown stands for a time that nobody knows.
const unknown = -1 * time.Second

// Event is one step in the life of a task.
type Event struct {
	At               time.Time
	AtOrBefore       bool // it was some time before At: Kueue keeps no more of it
	Type             EventType
	Reason           string // Kueue's word for why
	Message          string // Kueue's sentence
	Preemptor        *Task  // who it was preempted by, where that is known still
	PreemptorDeleted bool   // By has its address only: that task is gone
	PreemptorUID     string // the UID of the task it was preempted for, also where By is not known; of its Workload where nobody knows the task
	PreemptorTeam    string // of By; empty for none
	Size             int32  // of an elastic job from then on; 0 where it did not change
	WorkloadUID      string // the UID of its Workload; empty for its submission
	// Ran is how long it had run since its admission when it lost its quota;
	// negative where that is not known.
	Ran time.Duration
	// Nth is which preemption of its Workload it was, by Kueue's own count, which is
	// exact where several fall into one second; 0 where that is not known.
	PreemptionCount int32
	// Omitted are the preemptions right before it, for the same task, that are no
	// events of their own any more, and OmittedRan is how long it ran before these.
	Omitted    int32
	OmittedRan time.Duration
}

// lost tells whether a task lost its quota in a step.
func (e Event) lost() bool { return e.Type.Lost() }

// Deactivated reports whether a task lost its quota since spec.active became false.
func (e Event) Deactivated() bool {
	return e.Type == WasEvicted && e.Reason == kueue.WorkloadDeactivated
}

// Lost tells whether a task loses its quota by it.
func (h EventType) Lost() bool { return h == WasPreempted || h == WasEvicted }

// previously is how Kueue's sentence (0.18 and later) about what a task lost
// begins once it is admitted again.
const previously = "Previously: "

// rules are Kueue's words for the rules of preemption, by the end of its
// sentence, which is all that is left of them when a task is admitted again.
var rules = map[string]string{
	"prioritization in the ClusterQueue":            "InClusterQueue",
	"reclamation within the cohort":                 "InCohortReclamation",
	"Fair Sharing within the cohort":                "InCohortFairSharing",
	"reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
}

var dueTo = regexp.MustCompile(`due to ([^;]+)`)

// Timeline is the life of a task, the oldest step first: what the conditions of
// its Workloads still tell, of which Kueue keeps the last of each kind only, and
// what the index saw before that.
func (x *Index) Timeline(t *Task) []Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.timeline(t, x.life.pasts[groupKey{t.Namespace, t.UID}])
}

func (x *Index) timeline(t *Task, past *past) []Event {
	steps := x.steps(t, past)
	for _, w := range t.Parts {
		fillRuns(steps, w)
	}
	events := []Event{{At: t.Submitted, Type: WasSubmitted}}
	for _, s := range steps {
		switch {
		case s.by != "":
			s.PreemptorUID = string(s.by)
			if s.Preemptor, s.PreemptorDeleted = x.party(past, s.by); s.Preemptor != nil {
				s.PreemptorUID = s.Preemptor.UID
			}
		case s.Preemptor != nil:
			s.PreemptorDeleted = x.tasks[groupKey{s.Preemptor.Namespace, s.Preemptor.UID}] == nil
		}
		s.WorkloadUID = string(s.part)
		events = append(events, s.Event)
	}
	return events
}

// steps are what a task's conditions tell and told, the oldest first.
func (x *Index) steps(t *Task, past *past) []step {
	var steps []step
	if past != nil {
		steps = slices.Clone(past.steps)
	}
	for _, w := range t.Parts {
		for i := range w.Status.Conditions {
			c := &w.Status.Conditions[i]
			s := step{Event: eventOf(w, c), part: w.UID, by: preemptor(c)}
			switch {
			case kinds[c.Type] == "":
				continue
			case c.Status != metav1.ConditionTrue:
				if c.Type != kueue.WorkloadEvicted || !strings.HasPrefix(c.Message, previously) || slices.ContainsFunc(steps, func(s step) bool { return s.part == w.UID && s.lost() }) {
					continue
				}
				s.Event = formerly(c)
			case s.Type == WasFinished && c.Reason == replaced:
				continue // the next slice tells of it
			case s.Type == WasAdmitted && len(t.Parts) > 1 && w.Status.Admission != nil:
				s.Size = startedWith(w)
			}
			steps = append(steps, s)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
	return steps
}

// eventOf is what a condition tells.
func eventOf(w *kueue.Workload, c *metav1.Condition) Event {
	e := Event{At: c.LastTransitionTime.Time, Type: kinds[c.Type], Reason: c.Reason, Message: firstLine(c.Message), Ran: unknown}
	if e.Type == WasEvicted && c.Reason == kueue.WorkloadEvictedByPreemption {
		e.Type, e.PreemptionCount = WasPreempted, preemptions(w)
		if rule := conditionOf(w, kueue.WorkloadPreempted); rule != "" {
			e.Reason = rule
		}
	}
	return e
}

// formerly is what a condition still tells of the last time that a task lost its
// quota, once it has it again.
func formerly(c *metav1.Condition) Event {
	text := strings.TrimPrefix(firstLine(c.Message), previously)
	e := Event{At: c.LastTransitionTime.Time, AtOrBefore: true, Type: WasEvicted, Message: text, Ran: unknown}
	if found := dueTo.FindStringSubmatch(text); found != nil && rules[found[1]] != "" {
		e.Type, e.Reason = WasPreempted, rules[found[1]]
	}
	return e
}

// fillRuns fills in how long a Workload ran before each time that it lost its quota.
func fillRuns(steps []step, w *kueue.Workload) {
	var admitted *step
	var known time.Duration
	open := -1 // a loss before which it ran for a time that is not known yet
	losses := int32(0)
	for i := range steps {
		s := &steps[i]
		switch {
		case s.part != w.UID:
		case s.Type == WasAdmitted:
			admitted = s
		case s.lost():
			losses += 1 + s.Omitted
			known += s.OmittedRan
			switch {
			case admitted == nil:
				open = i
			case admitted.Ran >= 0:
				s.Ran = admitted.Ran
				known += s.Ran
			default: // it is stopping
				s.Ran = max(0, s.At.Sub(admitted.At))
				known += s.Ran
			}
			admitted = nil
		}
	}
	var all int32
	for _, e := range evictions(w) {
		all += e.Count
	}
	if open >= 0 && losses == all && w.Status.AccumulatedPastExecutionTimeSeconds != nil {
		steps[open].Ran = max(0, accumulated(w)-known)
	}
}

// party is the task that another was preempted for, and whether it is gone; nil
// where nobody knows it.
func (x *Index) party(p *past, uid types.UID) (*Task, bool) {
	if t := x.tasks[x.group[uid]]; t != nil {
		return t, false
	}
	if p == nil {
		return nil, false
	}
	for i := range p.by {
		if p.by[i].part == uid {
			t := p.by[i].task
			return &t, true
		}
	}
	return nil, false
}

func conditionOf(w *kueue.Workload, name string) string {
	for i := range w.Status.Conditions {
		if c := &w.Status.Conditions[i]; c.Type == name && c.Status == "True" {
			return c.Reason
		}
	}
	return ""
}

// around are those that stand right before and behind a task in its queue, n of
// each at most.
func (x *Index) around(t *Task, n int) (before, behind []*Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	place, of := x.place(t)
	if place == 0 {
		return nil, nil
	}
	list := x.queues[queueKey{t.Namespace, t.Queue}].list()
	return slices.Clone(list[max(0, place-1-n) : place-1]), slices.Clone(list[place:min(of, place+n)])
}
