package submit_test

import (
	"strings"
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

// TestNextName checks that a task that is submitted again has the number after its series,
// within the length of names.
func TestNextName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, tc := range map[string]struct {
		of   string
		used []string
		want string
	}{
		"the first":                 {"train", []string{"train"}, "train-2"},
		"the next":                  {"train-2", []string{"train", "train-2"}, "train-3"},
		"in a sweep":                {"lr-192", []string{"lr-1", "lr-192", "lr-194", "lr-200"}, "lr-201"},
		"beside another series":     {"lr", []string{"lr", "lr-decay-7", "other-9"}, "lr-2"},
		"a number that is no count": {"run-20261127", []string{"run-20261127"}, "run-20261127-2"},
		"a long name":               {long, []string{long, long[:61] + "-2"}, long[:61] + "-3"},
	} {
		used := map[string]bool{}
		for _, one := range tc.used {
			used[one] = true
		}
		if got := submit.NextName(tc.of, used, 63); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
