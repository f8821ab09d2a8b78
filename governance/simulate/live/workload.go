package live

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Workload returns the fields of a Workload that Kueue's scheduler reads. It shares
// them with w.
func Workload(w *kueue.Workload) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: w.UID, Generation: w.Generation, CreationTimestamp: w.CreationTimestamp, Annotations: w.Annotations},
		Spec:       w.Spec,
		Status: kueue.WorkloadStatus{Conditions: w.Status.Conditions, Admission: w.Status.Admission, RequeueState: w.Status.RequeueState,
			ReclaimablePods: w.Status.ReclaimablePods, AdmissionChecks: w.Status.AdmissionChecks, PreemptionGates: w.Status.PreemptionGates},
	}
}
