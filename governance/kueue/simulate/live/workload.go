package live

import (
	"slices"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// schedulerAnnotations are the annotations of Workloads that Kueue's scheduler reads.
var schedulerAnnotations = []string{tasks.AdmissionGatedByAnnotation, tasks.PriorityBoostAnnotation, tasks.SliceReplacementAnnotation, tasks.ElasticJobAnnotation, tasks.AllowedFlavorsAnnotation}

// Workload returns the fields of a Workload that Kueue's scheduler reads, without
// what is not simulated: the requests and placements by topology, and the claims of
// devices. It shares the fields with w. See decision 0043.
func Workload(w *kueue.Workload) *kueue.Workload {
	to := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: w.UID, Generation: w.Generation, CreationTimestamp: w.CreationTimestamp},
		Spec:       kueue.WorkloadSpec{QueueName: w.Spec.QueueName, Priority: w.Spec.Priority, Active: w.Spec.Active, PreemptionGates: w.Spec.PreemptionGates, PodSets: podSets(w.Spec.PodSets)},
		Status: kueue.WorkloadStatus{Conditions: w.Status.Conditions, Admission: admission(w.Status.Admission), RequeueState: w.Status.RequeueState,
			ReclaimablePods: w.Status.ReclaimablePods, AdmissionChecks: w.Status.AdmissionChecks, PreemptionGates: w.Status.PreemptionGates},
	}
	for _, key := range schedulerAnnotations {
		if value, has := w.Annotations[key]; has {
			metav1.SetMetaDataAnnotation(&to.ObjectMeta, key, value)
		}
	}
	return to
}

func podSets(sets []kueue.PodSet) []kueue.PodSet {
	if !slices.ContainsFunc(sets, func(s kueue.PodSet) bool { return s.TopologyRequest != nil || len(s.Template.Spec.ResourceClaims) > 0 }) {
		return sets
	}
	sets = slices.Clone(sets)
	for i := range sets {
		sets[i].Template.Spec.ResourceClaims = nil
		if t := sets[i].TopologyRequest; t != nil {
			sets[i].TopologyRequest = &kueue.PodSetTopologyRequest{PodSetGroupName: t.PodSetGroupName} // its pod sets get one flavor
		}
	}
	return sets
}

func admission(a *kueue.Admission) *kueue.Admission {
	if a == nil || !slices.ContainsFunc(a.PodSetAssignments, func(s kueue.PodSetAssignment) bool {
		return s.TopologyAssignment != nil || s.DelayedTopologyRequest != nil
	}) {
		return a
	}
	slim := *a
	slim.PodSetAssignments = slices.Clone(a.PodSetAssignments)
	for i := range slim.PodSetAssignments {
		slim.PodSetAssignments[i].TopologyAssignment, slim.PodSetAssignments[i].DelayedTopologyRequest = nil, nil
	}
	return &slim
}

// Omitted returns what decides on the admission of a Workload and is not simulated.
func Omitted(w *kueue.Workload) (all []simulate.Omission) {
	if _, elastic := w.Annotations[tasks.SliceReplacementAnnotation]; elastic {
		all = append(all, simulate.OmittedElasticSlices)
	}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		if len(set.Template.Spec.ResourceClaims) > 0 {
			all = append(all, simulate.OmittedDevices)
		}
		if hasOverheadOfClass(&set.Template.Spec) {
			all = append(all, simulate.OmittedOverhead)
		}
	}
	return all
}

// hasOverheadOfClass reports whether Kueue reads the overhead of a pod from its
// RuntimeClass.
func hasOverheadOfClass(spec *corev1.PodSpec) bool {
	return spec.RuntimeClassName != nil && len(spec.Overhead) == 0
}
