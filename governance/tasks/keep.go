package tasks

import (
	"cmp"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Lost is what the Workloads of a task were that do not exist any more, while its owner
// does: a person deleted them, or Kueue did after they finished.
type Lost struct {
	Ran   time.Duration
	State State // of the last one, until there is another; empty for none
}

// Keep carries over what before had by Workloads that do not exist any more at now: when
// the task was submitted, how long it ran, its evictions, and its outcome. Replicas of a
// serving task come and go: see serve.
func (t *Task) Keep(before *Task, now time.Time) {
	if t.IsServing() {
		return
	}
	if before.Submitted.Before(t.Submitted) {
		t.Submitted = before.Submitted
	}
	t.Lost, t.Replaced = before.Lost, before.Replaced
	if len(t.Parts) > 0 {
		t.Lost.State = ""
	}
	for _, w := range before.LostWorkloads(t) {
		t.Replaced.add(w)
		if w == before.Main {
			t.Lost.State = before.State
		}
		if w == before.Main || w.Annotations[SliceNameAnnotation] != "" && w.Annotations[SliceNameAnnotation] == before.Main.Annotations[SliceNameAnnotation] {
			var one Task
			ReadPart(w).times(&one, nil)
			t.Lost.Ran += one.Ran(now)
		}
	}
	t.Evictions += t.Replaced.Evictions
	t.Preemptions += t.Replaced.Preemptions
	t.RanBefore += t.Lost.Ran
	if len(t.Parts) > 0 {
		return
	}
	t.PriorityClass, t.Priority = cmp.Or(t.PriorityClass, before.PriorityClass), cmp.Or(t.Priority, before.Priority)
	if len(t.Requests) == 0 {
		t.Requests = before.Requests
	}
	if len(t.Pools) == 0 {
		t.Pools = before.Pools
	}
	if t.Size == (Size{}) {
		t.Size.Min, t.Size.Wanted = before.Size.Min, before.Size.Wanted
	}
	if before.State.Finished() && !t.State.Finished() { // its owner does not say so
		t.State, t.Since, t.Reason, t.Message, t.WaitingSince, t.FinishedAt = before.State, before.Since, before.Reason, before.Message, time.Time{}, before.FinishedAt
	}
	if t.State.Finished() {
		t.LastWait = before.LastWait
	}
	if t.Lost.Ran > 0 { // its Workloads said when
		t.AdmittedAt = time.Time{}
	}
}

// LostWorkloads returns those of t that now does not have any more, without growth, which
// comes and goes, and without the base of an ElasticJob that ends before its growth.
func (t *Task) LostWorkloads(now *Task) (list []*kueue.Workload) {
	if len(now.Parts) > 0 && now.Kind == v1alpha1.ElasticJobKind && !isBase(now.Main) {
		return nil
	}
	for _, w := range t.Parts {
		if !t.IsGrowth(w) && !slices.ContainsFunc(now.Parts, func(other *kueue.Workload) bool { return other.UID == w.UID }) {
			list = append(list, w)
		}
	}
	return list
}

// AsLost returns t as it was before its Workload was deleted, if there was none since: so
// a deletion of both is about a task that ran.
func (t *Task) AsLost() *Task {
	if t.Lost.State == "" || len(t.Parts) > 0 || t.State.Finished() {
		return t
	}
	was := *t
	was.State = t.Lost.State
	return &was
}
