package timeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// EventType is the kind of an Event.
type EventType string

// The types of events. History stores their values.
const (
	Submitted EventType = "Submitted"
	Reserved  EventType = "Reserved" // Kueue reserved quota
	Admitted  EventType = "Admitted"
	Ready     EventType = "Ready" // its pods are ready
	Preempted EventType = "Preempted"
	Evicted   EventType = "Evicted"
	Requeued  EventType = "Requeued"
	Finished  EventType = "Finished"

	// The loop guard's events, see Past.Record.
	LoopDetected EventType = "Preemption loop"
	Held         EventType = "Held by the loop guard"
	Released     EventType = "Released by the loop guard"
)

// WorkloadDeleted is the reason of the eviction of a Workload that was deleted.
const WorkloadDeleted = "WorkloadDeleted"

// Unknown is the duration of a run of unknown length.
const Unknown = -1 * time.Second

// Event is one step of a task's timeline.
type Event struct {
	At         time.Time
	AtOrBefore bool // the event happened at an unknown time before At
	Type       EventType
	Reason     string // of Kueue's condition
	Message    string // of Kueue's condition
	// Preemptor is the task that this one was preempted for; nil if it is unknown.
	// PreemptorDeleted reports that it does not exist any more and has its address only.
	Preemptor        *tasks.Task
	PreemptorDeleted bool
	PreemptorUID     string // of the task, or of its Workload if the task is unknown
	PreemptorTeam    string // empty for none
	Size             int64  // pods of an elastic job from then on; 0 if unchanged
	WorkloadUID      string // empty for the submission
	// Ran is how long the Workload ran between its admission and this loss of
	// quota; negative if unknown.
	Ran time.Duration
	// PreemptionCount is Kueue's count of preemptions of the Workload, this one
	// included. It orders preemptions of the same second. 0 if unknown.
	PreemptionCount int32
	// Omitted counts the preemptions for the same task directly before this one
	// that were folded into it. OmittedRan is how long the Workload ran before them.
	Omitted    int32
	OmittedRan time.Duration
}

// Deactivated reports whether the task was evicted because spec.active is false.
func (e Event) Deactivated() bool {
	return e.Type == Evicted && e.Reason == kueue.WorkloadDeactivated
}

// Repeats reports whether a preemption repeats an earlier one: of the same Workload,
// for the same task, within a minute.
func (e *Event) Repeats(before *Event) bool {
	return e.Type == Preempted && before.Type == Preempted && !e.AtOrBefore && !before.AtOrBefore &&
		e.WorkloadUID == before.WorkloadUID && e.PreemptorUID == before.PreemptorUID && (e.Omitted > 0 || e.At.Unix()-before.At.Unix() <= int64(repeatWithin/time.Second))
}

// repeatWithin is the longest time between two preemptions that are shown as one
// line.
const repeatWithin = time.Minute

// Lost reports whether a task loses its quota by such an event.
func (h EventType) Lost() bool { return h == Preempted || h == Evicted }

// betweenPreemptions reports whether events of the type happen between one
// preemption and the next.
func (h EventType) betweenPreemptions() bool {
	return h == Reserved || h == Admitted || h == Ready || h == Requeued
}

// conditionEvents maps condition types to the events that they stand for.
var conditionEvents = map[string]EventType{
	kueue.WorkloadAdmitted: Admitted, kueue.WorkloadPodsReady: Ready, kueue.WorkloadEvicted: Evicted,
	kueue.WorkloadRequeued: Requeued, kueue.WorkloadFinished: Finished,
}

// previously starts Kueue's message (0.18 and later) about the last eviction of a
// Workload that is admitted again.
const previously = "Previously: "

// preemptionReasons maps the end of Kueue's message about a preemption to its
// reason. The message is all that is left when the Workload is admitted again.
var preemptionReasons = map[string]string{
	"prioritization in the ClusterQueue":            "InClusterQueue",
	"reclamation within the cohort":                 "InCohortReclamation",
	"Fair Sharing within the cohort":                "InCohortFairSharing",
	"reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
	"the configured preemption rules":               "ConfigurablePreemption", // Kueue 0.20
}

var dueTo = regexp.MustCompile(`due to ([^;]+)`)

// eventOf returns the event that a condition stands for.
func eventOf(w *kueue.Workload, c *metav1.Condition) Event {
	e := Event{At: c.LastTransitionTime.Time, Type: conditionEvents[c.Type], Reason: c.Reason, Message: tasks.FirstLine(c.Message), Ran: Unknown}
	if e.Type == Evicted && c.Reason == kueue.WorkloadEvictedByPreemption {
		e.Type, e.PreemptionCount = Preempted, loopguard.Preemptions(w)
		if preempted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted); preempted != nil && preempted.Status == metav1.ConditionTrue && preempted.Reason != "" {
			e.Reason = preempted.Reason
		}
	}
	return e
}

// previousEviction returns the last eviction of a Workload that is admitted again.
func previousEviction(c *metav1.Condition) Event {
	text := strings.TrimPrefix(tasks.FirstLine(c.Message), previously)
	e := Event{At: c.LastTransitionTime.Time, AtOrBefore: true, Type: Evicted, Message: text, Ran: Unknown}
	if found := dueTo.FindStringSubmatch(text); found != nil && preemptionReasons[found[1]] != "" {
		e.Type, e.Reason = Preempted, preemptionReasons[found[1]]
	}
	return e
}

// preemptor returns the UID of the Workload that another was preempted for; empty
// for none.
func preemptor(c *metav1.Condition) types.UID { return loopguard.Preemptor(c.Message) }

// Events returns the timeline of t, the oldest event first: its conditions, of which
// Kueue keeps the last of each type only, and what p recorded before that. p may be
// nil.
func (p *Past) Events(t *tasks.Task, known Tasks) []Event {
	steps := p.steps(t)
	for _, w := range p.workloads(t) {
		setRuns(steps, w)
	}
	events := []Event{{At: t.Submitted, Type: Submitted}}
	for _, s := range steps {
		switch {
		case s.by != "":
			s.PreemptorUID = string(s.by)
			if s.Preemptor, s.PreemptorDeleted = p.preemptor(s.by, known); s.Preemptor != nil {
				s.PreemptorUID = s.Preemptor.UID
			}
		case s.Preemptor != nil:
			s.PreemptorDeleted = !known.Exists(s.Preemptor.Key())
		}
		s.WorkloadUID = string(s.workload)
		events = append(events, s.Event)
	}
	return events
}

// steps returns the recorded steps of t and those of its conditions, the oldest
// first.
func (p *Past) steps(t *tasks.Task) []step {
	var steps []step
	if p != nil {
		steps = slices.Clone(p.overwritten)
	}
	for _, w := range p.workloads(t) {
		if t.IsGrowth(w) { // its changes of size are in the ElasticJob
			continue
		}
		for i := range w.Status.Conditions {
			c := &w.Status.Conditions[i]
			s := step{Event: eventOf(w, c), workload: w.UID, by: preemptor(c)}
			switch {
			case conditionEvents[c.Type] == "":
				continue
			case c.Status != metav1.ConditionTrue:
				if c.Type != kueue.WorkloadEvicted || !strings.HasPrefix(c.Message, previously) || slices.ContainsFunc(steps, func(s step) bool { return s.workload == w.UID && s.Type.Lost() }) {
					continue
				}
				s.Event = previousEviction(c)
			case s.Type == Finished && c.Reason == kueue.WorkloadSliceReplaced:
				continue // the admission of the next slice is the event
			case s.Type == Admitted && len(t.Parts) > 1 && w.Status.Admission != nil:
				s.Size = admittedPods(w)
			}
			steps = append(steps, s)
		}
	}
	steps = append(steps, p.losses()...)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
	return steps
}

// workloads returns the Workloads of t, those first that were deleted while it went on.
func (p *Past) workloads(t *tasks.Task) []*kueue.Workload {
	if p == nil || len(p.lost) == 0 {
		return t.Parts
	}
	var list []*kueue.Workload
	for _, l := range p.lost {
		list = append(list, l.Workload)
	}
	return append(list, t.Parts...)
}

// losses returns the ends of the runs of Workloads that were deleted.
func (p *Past) losses() (steps []step) {
	if p == nil {
		return nil
	}
	for _, l := range p.lost {
		if tasks.ReadPart(l.Workload).State.UsesQuota() && !meta.IsStatusConditionTrue(l.Status.Conditions, kueue.WorkloadEvicted) {
			steps = append(steps, step{Event: Event{At: l.at, Type: Evicted, Reason: WorkloadDeleted, Message: "Its Workload was deleted.", Ran: Unknown}, workload: l.UID})
		}
	}
	return steps
}

// setRuns sets how long a Workload ran before each loss of quota.
func setRuns(steps []step, w *kueue.Workload) {
	var admitted *step
	var known time.Duration
	open := -1 // a loss after a run of unknown length
	losses := int32(0)
	for i := range steps {
		s := &steps[i]
		switch {
		case s.workload != w.UID:
		case s.Type == Admitted:
			admitted = s
		case s.Type.Lost():
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
	if open >= 0 && losses == tasks.EvictionsOf(w).Evictions && w.Status.AccumulatedPastExecutionTimeSeconds != nil {
		steps[open].Ran = max(0, accumulated(w)-known)
	}
}
