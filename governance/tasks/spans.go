package tasks

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Span is a time that one of a task's Workloads waited or ran, and that is over.
type Span struct {
	WorkloadUID  string // UID of the Workload
	Began, Ended time.Time
}

// Spans are the waits and runs of a task that are over, by Kueue's own times in
// whole seconds. A wait of which nobody saw the begin is left out, and so is what
// Kueue overwrote before this process began. A run that goes on ends when the
// task is gone.
func (s Snapshot) Spans() (waits, runs []Span) {
	for _, w := range s.Parts {
		more, ran := s.spansOf(w)
		waits, runs = append(waits, more...), append(runs, ran...)
	}
	return waits, runs
}

func (s Snapshot) spansOf(w *kueue.Workload) (waits, runs []Span) {
	part := string(w.UID)
	var all, known int32
	for _, e := range evictions(w) {
		all += e.Count
	}
	for _, e := range s.Events {
		if e.WorkloadUID == part && e.lost() && !e.AtOrBefore {
			known += 1 + e.Omitted
		}
	}
	var waiting, running time.Time // since when; zero while it does not, or nobody knows
	if known >= all {
		waiting = w.CreationTimestamp.Time
	}
	end := func(at time.Time) {
		if !running.IsZero() {
			runs = append(runs, Span{part, running, at})
		}
		running = time.Time{}
	}
	for _, e := range s.Events {
		switch {
		case e.WorkloadUID != part:
		case e.Type == WasAdmitted:
			if !waiting.IsZero() {
				waits = append(waits, Span{part, waiting, e.At})
			}
			waiting, running = time.Time{}, e.At
		case e.lost() && e.AtOrBefore: // some time before, and nobody knows when
		case e.lost():
			end(e.At)
			waiting = e.At
		case e.Type == WasRequeued && !waiting.IsZero() && e.At.After(waiting):
			waiting = e.At
		case e.Type == WasFinished:
			end(e.At)
		}
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); c != nil && c.Status == "True" {
		end(c.LastTransitionTime.Time) // such as a slice that another replaced
	}
	if !s.DeletedAt.IsZero() {
		end(s.DeletedAt)
	}
	return waits, runs
}
