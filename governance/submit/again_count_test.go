package submit_test

import (
	"testing"

	"kuota.dev/kuota/governance/submit"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestRestoreCount checks that a Job that Kueue admitted with fewer pods gets its own
// number back, and other completions only if Kueue changed them too.
func TestRestoreCount(t *testing.T) {
	least := int32(2)
	for name, want := range map[string]struct {
		annotations map[string]string
		completions int64
	}{
		"without the annotation": {nil, 2},
		"with the annotation":    {map[string]string{"kueue.x-k8s.io/job-completions-equal-parallelism": "true"}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parallelism": int64(2), "completions": int64(2)}}}
			job.SetKind("Job")
			job.SetAnnotations(want.annotations)
			submit.RestoreCount(job, &kueue.PodSet{Count: 8, MinCount: &least})
			for field, count := range map[string]int64{"parallelism": 8, "completions": want.completions} {
				if got, _, _ := unstructured.NestedInt64(job.Object, "spec", field); got != count {
					t.Errorf("%s: got %d, want %d", field, got, count)
				}
			}
		})
	}
}
