package audit

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Activity has the reason that the form of a spec sends as an annotation, and no reason of
// an earlier change.
func TestReason(t *testing.T) {
	saved := &v1alpha1.ComputeAllocation{}
	v1alpha1.SetReason(saved, "more GPUs")
	for name, tc := range map[string]struct {
		change Change
		want   string
	}{
		"created":              {Change{Action: Create, Object: saved, New: saved.Spec}, "more GPUs"},
		"changed":              {Change{Action: Update, Object: saved, New: saved.Spec}, "more GPUs"},
		"with another reason":  {Change{Action: Update, Object: saved, New: saved.Spec, Reason: "fewer"}, "fewer"},
		"changed without one":  {Change{Action: Update, Object: &v1alpha1.ComputeAllocation{}, New: saved.Spec}, ""},
		"deleted":              {Change{Action: Delete, Object: saved, Old: saved.Spec}, ""},
		"its annotations only": {Change{Action: Update, Object: saved}, ""},
	} {
		if got := tc.change.reason(); got != tc.want {
			t.Errorf("%s: got the reason %q, want %q", name, got, tc.want)
		}
	}
}
