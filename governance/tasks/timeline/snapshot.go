package timeline

import (
	"time"

	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Snapshot is the state of one task that the recorder persists.
type Snapshot struct {
	*tasks.Task
	Events    []Event   // all known, the oldest first; the first is the submission
	DeletedAt time.Time // of its objects; zero while they exist
	Loops     []Loop    // that its Workloads were preempted in
	// Lost are its Workloads that were deleted while it went on, and when.
	Lost map[*kueue.Workload]time.Time
}

// Span is a completed wait or run of one of a task's Workloads.
type Span struct {
	WorkloadUID  string
	Began, Ended time.Time
}

// Spans returns the completed waits and runs of a task, by Kueue's times in whole
// seconds. Waits with an unknown begin, and what Kueue overwrote before this
// process started, are left out. A run that is going on ends when the task is
// deleted.
func (s Snapshot) Spans() (waits, runs []Span) {
	for _, w := range s.Parts {
		if s.IsGrowth(w) { // a task waits and runs with its minimum
			continue
		}
		more, ran := s.spansOf(w, s.DeletedAt)
		waits, runs = append(waits, more...), append(runs, ran...)
	}
	for w, at := range s.Lost {
		more, ran := s.spansOf(w, at)
		waits, runs = append(waits, more...), append(runs, ran...)
	}
	return waits, runs
}

// spansOf returns those of one Workload. deleted is zero while it exists.
func (s Snapshot) spansOf(w *kueue.Workload, deleted time.Time) (waits, runs []Span) {
	uid := string(w.UID)
	var known int32
	for _, e := range s.Events {
		if e.WorkloadUID == uid && e.Type.Lost() && !e.AtOrBefore {
			known += 1 + e.Omitted
		}
	}
	var waiting, running time.Time // since when; zero while it does not, or if unknown
	if known >= tasks.EvictionsOf(w).Evictions {
		waiting = w.CreationTimestamp.Time
	}
	end := func(at time.Time) {
		if !running.IsZero() {
			runs = append(runs, Span{uid, running, at})
		}
		running = time.Time{}
	}
	for _, e := range s.Events {
		switch {
		case e.WorkloadUID != uid:
		case e.Type == Admitted:
			if !waiting.IsZero() {
				waits = append(waits, Span{uid, waiting, e.At})
			}
			waiting, running = time.Time{}, e.At
		case e.Type.Lost() && e.AtOrBefore: // at an unknown time
		case e.Type.Lost():
			end(e.At)
			waiting = e.At
		case e.Type == Requeued && !waiting.IsZero() && e.At.After(waiting):
			waiting = e.At
		case e.Type == Finished:
			end(e.At)
		}
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); c != nil && c.Status == "True" {
		end(c.LastTransitionTime.Time) // such as a replaced slice
	}
	if !deleted.IsZero() {
		end(deleted)
	}
	return waits, runs
}

// Loop is a preemption loop: Kueue preempts one Workload again and again for another
// one that it never admits. Since and Last are the first and the latest
// preemption, by Kueue's conditions, in whole seconds.
//
// Runs and waits of the Workload that began at or after Since and ended at or before
// Last are neither work nor queueing: averages and longest times exclude them. The
// run that the first preemption ended began before Since, and counts.
type Loop struct {
	Namespace   string
	WorkloadUID types.UID // of the preempted Workload
	Since, Last time.Time
	// Runs is how many runs the loop ended after the first one, by Kueue's count of
	// preemptions.
	Runs int32
}

// Covers reports whether a wait or run of the Workload belongs to the loop.
func (l *Loop) Covers(began, ended time.Time) bool {
	return began.Unix() >= l.Since.Unix() && ended.Unix() <= l.Last.Unix()
}

// Contains reports whether at is within the loop.
func (l *Loop) Contains(at time.Time) bool {
	return at.Unix() >= l.Since.Unix() && at.Unix() <= l.Last.Unix()
}
