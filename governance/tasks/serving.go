package tasks

import (
	"slices"

	"kuota.dev/kuota/governance/controllers/loopguard"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// DeploymentKind is the kind of Deployments. Kueue creates one Workload for each of
// their pods.
const DeploymentKind = "Deployment"

// servingKinds are the kinds that run until they are scaled to 0 or deleted. Kueue
// admits each pod of a Deployment and each group of a LeaderWorkerSet by itself, and
// all pods of a StatefulSet at once (0.19).
var servingKinds = []string{DeploymentKind, "StatefulSet", "LeaderWorkerSet"}

// IsServingKind reports whether tasks of a kind serve: they have replicas, and never
// finish.
func IsServingKind(kind string) bool { return slices.Contains(servingKinds, kind) }

// IsServing reports whether t has replicas, which come and go while it runs.
func (t *Task) IsServing() bool { return IsServingKind(t.Kind) }

// ScalesByReplica reports whether the number of replicas of t can change while it runs:
// Kueue 0.19 rejects that for a StatefulSet, except to 0 and back.
func (t *Task) ScalesByReplica() bool { return t.IsServing() && t.Kind != "StatefulSet" }

func servesReplicas(w *kueue.Workload) bool {
	kind, _, _ := OwnerOf(w)
	return IsServingKind(kind)
}

// Replicas returns how many replicas of a serving task have quota, and how many it
// wants.
func (t *Task) Replicas() (admitted, wanted int64) {
	if t.Kind == "StatefulSet" { // one Workload has all of them
		return t.Size.Admitted, t.Size.Wanted
	}
	for _, w := range t.Parts {
		p := ReadPart(w)
		if wanted++; p.State.UsesQuota() {
			admitted++
		}
	}
	return admitted, wanted
}

// serve sets what a serving task has beyond its parts of this moment: it runs on while
// its replicas are replaced. before is the earlier task; nil for none.
func (t *Task) serve(parts []Part, chief Part, before *Task) {
	t.Size.Min = chief.MinPods // each replica starts by itself
	if t.State.UsesQuota() {
		for _, p := range parts {
			var first Task
			if p.times(&first, nil); p.State.UsesQuota() && !first.AdmittedAt.IsZero() && (t.AdmittedAt.IsZero() || first.AdmittedAt.Before(t.AdmittedAt)) {
				t.AdmittedAt, t.LastWait = first.AdmittedAt, first.LastWait
			}
		}
	}
	if before == nil {
		return
	}
	t.Replaced = before.Replaced
	for _, w := range before.Parts {
		if !slices.ContainsFunc(t.Parts, func(now *kueue.Workload) bool { return now.UID == w.UID }) {
			t.Replaced.add(w)
		}
	}
	t.Evictions += t.Replaced.Evictions
	t.Preemptions += t.Replaced.Preemptions
	t.RanBefore = max(t.RanBefore, before.RanBefore)
	switch ran := before.State.UsesQuota() && !before.AdmittedAt.IsZero(); {
	case ran && t.State.UsesQuota():
		t.RanBefore = before.RanBefore
		if !t.AdmittedAt.Before(before.AdmittedAt) || t.AdmittedAt.IsZero() {
			t.AdmittedAt, t.LastWait = before.AdmittedAt, before.LastWait
		}
	case ran && t.State.Waiting(): // the pods that replace preempted ones have Workloads of their own
		t.RanBefore = before.Ran(t.WaitingSince)
		if evicted := meta.FindStatusCondition(before.Main.Status.Conditions, kueue.WorkloadEvicted); evicted != nil && evicted.Reason == kueue.WorkloadEvictedByPreemption {
			t.State = Preempted
		}
	case before.State.Waiting() && t.State.Waiting():
		t.WaitingSince = before.WaitingSince
		if before.State == Preempted {
			t.State = Preempted
		}
	}
}

// EvictionCount counts the evictions of Workloads.
type EvictionCount struct{ Evictions, Preemptions int32 }

// EvictionsOf counts the evictions of a Workload.
func EvictionsOf(w *kueue.Workload) EvictionCount {
	n := EvictionCount{Preemptions: loopguard.Preemptions(w)}
	if s := w.Status.SchedulingStats; s != nil {
		for _, e := range s.Evictions {
			n.Evictions += e.Count
		}
	}
	return n
}

func (e *EvictionCount) add(w *kueue.Workload) {
	of := EvictionsOf(w)
	e.Evictions += of.Evictions
	e.Preemptions += of.Preemptions
}
