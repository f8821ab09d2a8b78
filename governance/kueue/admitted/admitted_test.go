package admitted_test

import (
	"testing"

	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
