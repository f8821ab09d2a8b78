package timeline

import (
	"cmp"
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Cause is why the size of a task changed.
type Cause string

// The causes.
const (
	Started     Cause = "Started"   // with all that it wants
	StartedPart Cause = "Partially" // with the pods that fit
	Scaled      Cause = "Scaled"    // its requested size changed
	Joined      Cause = "Joined"    // another part of it got its quota
	Lost        Cause = "Lost"      // a part was evicted, for no other task
	LostTo      Cause = "Preempted" // a part was preempted
	Ended       Cause = "Ended"     // or a part of it did
)

// Resize is a change of how many pods of a task use quota.
type Resize struct {
	At       time.Time
	From, To int64
	Cause    Cause
}

// varies reports whether a task can change its size while it runs.
func varies(t *tasks.Task) bool {
	return len(t.Parts) > 1 || t.Main.Annotations[tasks.SliceNameAnnotation] != "" || t.Size.Min < t.Size.Wanted
}

// admittedNow returns how many pods of a task use quota. For a moment both a slice
// and its replacement do, of which only the newer counts.
func admittedNow(t *tasks.Task) int64 {
	switch {
	case t.NoWorkload:
		return 0
	case !t.Elastic():
		return t.Size.Admitted
	}
	for _, w := range t.Parts { // the newest first
		if p := tasks.ReadPart(w); p.State.UsesQuota() {
			return p.Admitted
		}
	}
	return 0
}

// resized returns the change of size from before to t, if any. now is its time if
// no condition dates it.
func resized(before, t *tasks.Task, now time.Time) (Resize, bool) {
	if !varies(before) && !varies(t) {
		return Resize{}, false
	}
	r := Resize{At: now.Truncate(time.Second), From: admittedNow(before), To: admittedNow(t), Cause: Scaled}
	if r.From == r.To {
		return Resize{}, false
	}
	if r.To > r.From {
		for _, w := range t.Parts {
			c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
			if w.Status.Admission == nil || c == nil || slices.ContainsFunc(before.Parts, func(old *kueue.Workload) bool { return old.UID == w.UID && old.Status.Admission != nil }) {
				continue
			}
			r.At, r.Cause = c.LastTransitionTime.Time, joins(w, r)
		}
		return r, true
	}
	for _, w := range t.Parts {
		for _, old := range before.Parts {
			if old.UID != w.UID {
				continue
			}
			if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); c != nil && !meta.IsStatusConditionTrue(old.Status.Conditions, kueue.WorkloadFinished) && c.Reason != kueue.WorkloadSliceReplaced {
				r.At, r.Cause = c.LastTransitionTime.Time, Ended
			}
			if old.Status.Admission != nil && w.Status.Admission == nil {
				r.At, r.Cause = stopped(w, r.At)
			}
		}
	}
	if len(t.Parts) < len(before.Parts) && r.Cause == Scaled && !t.Elastic() { // a part was deleted
		r.Cause = Ended
	}
	return r, true
}

// admittedPods returns how many pods a Workload was admitted with; it may have been
// scaled down since.
func admittedPods(w *kueue.Workload) (pods int64) {
	for i := range w.Status.Admission.PodSetAssignments {
		if n := w.Status.Admission.PodSetAssignments[i].Count; n != nil {
			pods += int64(*n)
		}
	}
	if pods == 0 {
		return tasks.ReadPart(w).Admitted
	}
	return pods
}

// joins returns why a task grew when a Workload of it was admitted.
func joins(w *kueue.Workload, r Resize) Cause {
	switch {
	case r.From > 0 && w.Annotations[tasks.SliceReplacementAnnotation] != "":
		return Scaled
	case r.From > 0:
		return Joined
	case admittedPods(w) < tasks.ReadPart(w).Pods:
		return StartedPart
	}
	return Started
}

// stopped returns when and why a Workload lost its quota.
func stopped(w *kueue.Workload, at time.Time) (time.Time, Cause) {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return at, Lost
	}
	if c.Reason == kueue.WorkloadEvictedByPreemption {
		return c.LastTransitionTime.Time, LostTo
	}
	return c.LastTransitionTime.Time, Lost
}

// Sizes returns the known changes of a task's size, the oldest first: those in p, and
// before them those that its Workloads show. Most tasks have one size and no
// changes. p may be nil.
func (p *Past) Sizes(t *tasks.Task) (sizes []Resize) {
	if !varies(t) {
		return nil
	}
	var seen []Resize
	if p != nil {
		seen = p.sizes
	}
	for _, r := range workloadSizes(t) {
		if len(seen) == 0 || r.At.Before(seen[0].At) && r.To <= seen[0].From {
			sizes = append(sizes, r)
		}
	}
	return append(sizes, seen...)
}

// workloadSizes returns the changes of size that the Workloads of a task show.
func workloadSizes(t *tasks.Task) (sizes []Resize) {
	type change struct {
		at    time.Time
		pods  int64
		cause Cause
		part  *kueue.Workload
	}
	var changes []change
	for _, w := range t.Parts {
		admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if w.Status.Admission == nil || admitted == nil || admitted.Status != metav1.ConditionTrue {
			continue
		}
		pods := admittedPods(w)
		changes = append(changes, change{admitted.LastTransitionTime.Time, pods, Started, w})
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); c != nil && (c.Reason != kueue.WorkloadSliceReplaced || !t.Elastic()) {
			changes = append(changes, change{c.LastTransitionTime.Time, -pods, Ended, w})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at.Unix(), b.at.Unix()), a.part.CreationTimestamp.Compare(b.part.CreationTimestamp.Time))
	})
	var now int64
	for _, c := range changes {
		r := Resize{At: c.at, From: now, To: now + c.pods, Cause: c.cause}
		if t.Elastic() && c.pods > 0 { // a slice is the whole job
			r.To = c.pods
		}
		if c.cause == Started {
			r.Cause = joins(c.part, r)
		}
		if r.To != r.From {
			sizes = append(sizes, r)
		}
		now = max(0, r.To)
	}
	return sizes
}
