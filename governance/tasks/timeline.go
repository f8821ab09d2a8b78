package tasks

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Happened is what Kueue did with a task.
type Happened string

// What happens to tasks.
const (
	WasSubmitted Happened = "Submitted"
	WasReserved  Happened = "Reserved" // got its quota
	WasAdmitted  Happened = "Admitted"
	WasReady     Happened = "Ready" // its pods
	WasPreempted Happened = "Pre-empted"
	WasEvicted   Happened = "Evicted"
	WasRequeued  Happened = "Requeued"
	WasFinished  Happened = "Finished"
)

// Event is one step in the life of a task.
type Event struct {
	At     time.Time
	What   Happened
	Reason string // Kueue's word for why
	Text   string // Kueue's sentence
	By     *Task  // who it was pre-empted by, where that is known still
	Size   int32  // of an elastic job from then on; 0 where it did not change
}

// byUID finds in Kueue's sentence (0.16 to 0.19) which Workload another was
// pre-empted for; nothing else names it.
var byUID = regexp.MustCompile(`\(UID: ([0-9a-fA-F-]+)`)

// Timeline is what the conditions of a task's Workloads still tell, the oldest
// first. Kueue keeps the last time of each kind only.
func (x *Index) Timeline(t *Task) []Event {
	events := []Event{{At: t.Submitted, What: WasSubmitted}}
	kinds := map[string]Happened{
		kueue.WorkloadAdmitted: WasAdmitted, kueue.WorkloadPodsReady: WasReady, kueue.WorkloadEvicted: WasEvicted,
		kueue.WorkloadRequeued: WasRequeued, kueue.WorkloadFinished: WasFinished,
	}
	for _, w := range t.Parts {
		for i := range w.Status.Conditions {
			c := &w.Status.Conditions[i]
			what, known := kinds[c.Type]
			if !known || c.Status != "True" {
				continue
			}
			e := Event{At: c.LastTransitionTime.Time, What: what, Reason: c.Reason, Text: firstLine(c.Message)}
			switch {
			case what == WasFinished && c.Reason == replaced:
				continue // the next slice tells of it
			case what == WasEvicted && c.Reason == kueue.WorkloadEvictedByPreemption:
				e.What = WasPreempted
				if found := byUID.FindStringSubmatch(c.Message); found != nil {
					e.By = x.ofWorkload(found[1])
				}
				if p := conditionOf(w, kueue.WorkloadPreempted); p != "" {
					e.Reason = p
				}
			case what == WasAdmitted && len(t.Parts) > 1:
				e.Size = readPart(w).admitted
			}
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
	return events
}

func conditionOf(w *kueue.Workload, name string) string {
	for i := range w.Status.Conditions {
		if c := &w.Status.Conditions[i]; c.Type == name && c.Status == "True" {
			return c.Reason
		}
	}
	return ""
}

// ofWorkload is the task that a Workload belongs to; nil for none.
func (x *Index) ofWorkload(uid string) *Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	key, ok := x.group[types.UID(uid)]
	if !ok {
		return nil
	}
	return x.tasks[key]
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
