package admitted_test

import (
	"testing"

	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestPodSets(t *testing.T) {
	for name, tc := range map[string]struct {
		count, admitted, reclaimable int32
		admittedUsage                string
		wantCount                    int32
		wantUsage                    resources.Amount
	}{
		"all pods admitted":                              {count: 4, admitted: 4, admittedUsage: "8", wantCount: 4, wantUsage: 8},
		"two pods reclaimable":                           {count: 4, admitted: 4, reclaimable: 2, admittedUsage: "8", wantCount: 2, wantUsage: 4},
		"partly admitted, none reclaimable":              {count: 6, admitted: 4, admittedUsage: "8", wantCount: 4, wantUsage: 8},
		"partly admitted, one of the others reclaimable": {count: 6, admitted: 4, reclaimable: 1, admittedUsage: "8", wantCount: 4, wantUsage: 8},
		"scaled down while running":                      {count: 1, admitted: 3, admittedUsage: "6", wantCount: 1, wantUsage: 2},
		"more reclaimable than running pods":             {count: 1, admitted: 3, reclaimable: 2, admittedUsage: "6", wantCount: 0, wantUsage: 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &kueue.Workload{}
			w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: tc.count}}
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: tc.reclaimable}}
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
				Name: "main", Count: &tc.admitted, Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "p5"},
				ResourceUsage: map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse(tc.admittedUsage)},
			}}}
			for set := range admitted.PodSets(w) {
				if set.Count != tc.wantCount || set.Usage["nvidia.com/gpu"] != tc.wantUsage || set.Flavors["nvidia.com/gpu"] != "p5" {
					t.Errorf("got %+v, want %d pods that use %d GPUs of p5", set, tc.wantCount, tc.wantUsage)
				}
			}
		})
	}
}

// TestUsesNothing gives Workloads that keep an admission which Kueue does not count.
func TestUsesNothing(t *testing.T) {
	for name, end := range map[string]func(*kueue.Workload){
		"finished": func(w *kueue.Workload) {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		},
		"deactivated": func(w *kueue.Workload) { w.Spec.Active = new(false) },
	} {
		w := &kueue.Workload{}
		w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: new(int32(1)), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "p5"},
			ResourceUsage: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("7")},
		}}}
		fr := quota.FlavorResource{Flavor: "p5", Resource: "cpu"}
		if before := admitted.Usage(w); before[fr] == 0 {
			t.Fatalf("before: got %v, want 7 cpu", before)
		}
		if end(w); len(admitted.Usage(w)) != 0 {
			t.Errorf("%s: got %v, want nothing", name, admitted.Usage(w))
		}
	}
}
