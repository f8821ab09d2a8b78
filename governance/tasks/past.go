package tasks

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/loopguard"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// pastLength is how many steps, sizes and others are remembered of one task.
const pastLength = 20

// past is what a task's Workloads told before Kueue overwrote it.
type past struct {
	steps []step
	sizes []Resize
	by    []party
}

// step is a condition that is no more.
type step struct {
	Event
	part types.UID
	by   types.UID // the Workload that it was preempted for
}

// party is another task that preempted this one, known by name should it go.
type party struct {
	part types.UID // its Workload
	task Task      // its address and nothing else
}

// kinds are the conditions that tell of steps in a task's life.
var kinds = map[string]EventType{
	kueue.WorkloadAdmitted: WasAdmitted, kueue.WorkloadPodsReady: WasReady, kueue.WorkloadEvicted: WasEvicted,
	kueue.WorkloadRequeued: WasRequeued, kueue.WorkloadFinished: WasFinished,
}

// remember keeps what a task told that it does not tell any more.
func (x *Index) remember(before, t *Task) {
	x.meet(t)
	if before == nil {
		return
	}
	for _, old := range before.Parts {
		i := slices.IndexFunc(t.Parts, func(w *kueue.Workload) bool { return w.UID == old.UID })
		if i < 0 || t.Parts[i] == old {
			continue
		}
		w := t.Parts[i]
		for j := range old.Status.Conditions {
			c := &old.Status.Conditions[j]
			if kinds[c.Type] == "" || c.Status != metav1.ConditionTrue || told(w, c) {
				continue
			}
			s := step{Event: eventOf(old, c), part: w.UID, by: preemptor(c)}
			switch s.Type {
			case WasReady: // told by neither Kueue nor us: there are too many
				continue
			case WasAdmitted:
				s.Ran = ranMore(old, w)
			case WasPreempted: // the rule and the other's name say it all
				s.Message = ""
			}
			x.pastOf(t).add(s)
		}
	}
	if r, changed := resized(before, t, x.now()); changed {
		p := x.pastOf(t)
		p.sizes = bounded(append(p.sizes, r))
	}
}

// meet keeps the names of those that preempt a task: the condition has their
// UID only, and they may be gone when somebody asks.
func (x *Index) meet(t *Task) {
	for _, w := range t.Parts {
		for i := range w.Status.Conditions {
			c := &w.Status.Conditions[i]
			if c.Type != kueue.WorkloadEvicted || c.Status != metav1.ConditionTrue {
				continue
			}
			uid := preemptor(c)
			by := x.tasks[x.group[uid]]
			if uid == "" || by == nil {
				continue
			}
			p := x.pastOf(t)
			if slices.ContainsFunc(p.by, func(q party) bool { return q.part == uid }) {
				continue
			}
			p.by = bounded(append(p.by, party{uid, Task{Namespace: by.Namespace, Kind: by.Kind, Name: by.Name, UID: by.UID}}))
		}
	}
}

func (x *Index) pastOf(t *Task) *past {
	key := groupKey{t.Namespace, t.UID}
	p := x.life.pasts[key]
	if p == nil {
		p = &past{}
		x.life.pasts[key] = p
	}
	return p
}

// bounded forgets the oldest.
func bounded[S ~[]E, E any](list S) S {
	if len(list) > pastLength {
		return slices.Delete(list, 0, len(list)-pastLength)
	}
	return list
}

// told tells whether a Workload still tells what a condition told.
func told(w *kueue.Workload, c *metav1.Condition) bool {
	now := meta.FindStatusCondition(w.Status.Conditions, c.Type)
	return now != nil && now.Status == c.Status && now.LastTransitionTime.Equal(&c.LastTransitionTime) && now.Reason == c.Reason
}

// preemptor is the UID of the Workload that another was preempted for; empty
// for none.
func preemptor(c *metav1.Condition) types.UID {
	return loopguard.Preemptor(c.Message)
}

// ranMore is how long a Workload ran in the admission that it lost, as Kueue
// counts it; negative where Kueue does not tell.
func ranMore(old, w *kueue.Workload) time.Duration {
	if w.Status.AccumulatedPastExecutionTimeSeconds == nil {
		return unknown
	}
	return accumulated(w) - accumulated(old)
}

func accumulated(w *kueue.Workload) time.Duration {
	if s := w.Status.AccumulatedPastExecutionTimeSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}
