// Package admitted computes the usage of admitted Workloads: pure functions of
// a Workload's spec and status. It reads no queue and no node.
package admitted

import (
	"iter"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// PodSet is the usage of one pod set.
type PodSet struct {
	Name    string
	Count   int32             // pods that use quota
	Flavors map[string]string // by resource
	Usage   quota.Resources
}

// AddTo adds the usage to that of flavors.
func (s PodSet) AddTo(sum quota.FlavorResourceQuantities) {
	for name, amount := range s.Usage {
		fr := quota.FlavorResource{Flavor: s.Flavors[name], Resource: name}
		sum[fr] = sum[fr].Plus(amount)
	}
}

// Usage returns the usage of an admitted Workload, see PodSets.
func Usage(w *kueue.Workload) quota.FlavorResourceQuantities {
	sum := quota.FlavorResourceQuantities{}
	for set := range PodSets(w) {
		set.AddTo(sum)
	}
	return sum
}

// PodSets returns the pod sets of an admitted Workload as Kueue (0.19) counts them:
// without reclaimable pods, and without those that an elastic job was scaled down
// by, although the admission still has them. A finished or deactivated Workload keeps
// its admission and uses nothing: Kueue gives the quota of the second to others while
// its pods are ending.
func PodSets(w *kueue.Workload) iter.Seq[PodSet] {
	return func(yield func(PodSet) bool) {
		if w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || !ptr.Deref(w.Spec.Active, true) {
			return
		}
		for i := range w.Status.Admission.PodSetAssignments {
			assignment := &w.Status.Admission.PodSetAssignments[i]
			set := PodSet{Name: string(assignment.Name), Count: podSetCount(w, assignment.Name, 0), Flavors: make(map[string]string, len(assignment.Flavors)), Usage: make(quota.Resources, len(assignment.ResourceUsage))}
			if assignment.Count != nil {
				set.Count = *assignment.Count
			}
			of, count := int64(set.Count), int64(min(set.Count, max(0, podSetCount(w, assignment.Name, set.Count)-reclaimableCount(w, assignment.Name))))
			set.Count = int32(count) //nolint:gosec // it is at most an int32
			for name, amount := range assignment.ResourceUsage {
				used := resources.AmountFromQuantity(string(name), amount)
				if count < of {
					used = (used / resources.Amount(of)).Times(count)
				}
				set.Usage[string(name)] = used
				set.Flavors[string(name)] = string(assignment.Flavors[name])
			}
			if !yield(set) {
				return
			}
		}
	}
}

// podSetCount returns the count of a pod set; unknown if the Workload does not have
// it.
func podSetCount(w *kueue.Workload, name kueue.PodSetReference, unknown int32) int32 {
	for i := range w.Spec.PodSets {
		if w.Spec.PodSets[i].Name == name {
			return w.Spec.PodSets[i].Count
		}
	}
	return unknown
}

// reclaimableCount returns how many pods of a set no longer need their quota.
func reclaimableCount(w *kueue.Workload, name kueue.PodSetReference) int32 {
	for i := range w.Status.ReclaimablePods {
		if w.Status.ReclaimablePods[i].Name == name {
			return w.Status.ReclaimablePods[i].Count
		}
	}
	return 0
}
