package admitted_test

import (
	"testing"

	"kuota.dev/kuota/governance/admitted"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestSets(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, given, returned int32
		usage                   string
		count                   int32
		holds                   int64
	}{
		"all that it wants":                 {wanted: 4, given: 4, usage: "8", count: 4, holds: 8},
		"two pods have ended":               {wanted: 4, given: 4, returned: 2, usage: "8", count: 2, holds: 4},
		"a part, of which none has ended":   {wanted: 6, given: 4, usage: "8", count: 4, holds: 8},
		"a part, and one of those to come":  {wanted: 6, given: 4, returned: 1, usage: "8", count: 4, holds: 8},
		"reduced while it runs":             {wanted: 1, given: 3, usage: "6", count: 1, holds: 2},
		"more returned than there are pods": {wanted: 1, given: 3, returned: 2, usage: "6", count: 0, holds: 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &kueue.Workload{}
			w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: tc.wanted}}
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: tc.returned}}
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
				Name: "main", Count: &tc.given, Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "p5"},
				ResourceUsage: map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse(tc.usage)},
			}}}
			for set := range admitted.PodSets(w) {
				if set.Count != tc.count || set.Usage["nvidia.com/gpu"] != tc.holds || set.Flavors["nvidia.com/gpu"] != "p5" {
					t.Errorf("it holds %+v", set)
				}
			}
		})
	}
}
