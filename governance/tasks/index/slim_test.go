package index

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Workloads with equal assignments and requests share them. Each reads as before, and
// Workloads that differ share nothing.
func TestSlimShares(t *testing.T) {
	slim, random := new(slimmer), rand.New(rand.NewPCG(1, 2))
	one := func(names ...string) string { return names[random.IntN(len(names))] }
	amounts := func() corev1.ResourceList {
		list := corev1.ResourceList{}
		for range random.IntN(3) {
			list[corev1.ResourceName(one("cpu", "memory", "nvidia.com/gpu"))] = resource.MustParse(one("1", "2", "1500m", "1Gi"))
		}
		return list
	}
	copies := map[*kueue.PodSetAssignment]bool{}
	for range 5000 {
		w := &kueue.Workload{Status: kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: "q"}}}
		w.Labels = map[string]string{"kueue.x-k8s.io/job-uid": "u"}
		w.Annotations = map[string]string{tasks.AdmissionGatedByAnnotation: one("a", "b"), "example.com/other": "x"}
		for i := range 1 + random.IntN(2) {
			set := kueue.PodSetAssignment{Name: kueue.NewPodSetReference(fmt.Sprint("set-", i)), ResourceUsage: amounts(), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}}
			if random.IntN(2) == 0 {
				count := random.Int32N(3)
				set.Count = &count
			}
			for name := range set.ResourceUsage {
				set.Flavors[name] = kueue.ResourceFlavorReference(one("a100", "h100"))
			}
			w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, set)
			w.Status.ResourceRequests = append(w.Status.ResourceRequests, kueue.PodSetRequest{Name: set.Name, Resources: amounts()})
		}
		before := w.DeepCopy()
		slim.slim(w)
		shared := &w.Status.Admission.PodSetAssignments[0]
		if slim.slim(w); shared != &w.Status.Admission.PodSetAssignments[0] { // as an informer does
			t.Fatal("slimmed twice, the Workload shares another assignment")
		}
		if !reflect.DeepEqual(w.Status.Admission.PodSetAssignments, before.Status.Admission.PodSetAssignments) || !reflect.DeepEqual(w.Status.ResourceRequests, before.Status.ResourceRequests) {
			t.Fatalf("got %+v, want %+v", w.Status, before.Status)
		}
		if w.Labels != nil || len(w.Annotations) != 1 || w.Annotations[tasks.AdmissionGatedByAnnotation] != before.Annotations[tasks.AdmissionGatedByAnnotation] {
			t.Fatalf("the slim Workload has the labels %v and annotations %v", w.Labels, w.Annotations)
		}
		copies[shared] = true
	}
	if len(copies) > 4000 {
		t.Errorf("5,000 Workloads have %d assignments, want at most 4,000", len(copies))
	}
}
