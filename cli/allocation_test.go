package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A quota has the amounts of a row, and other resources by their names.
func TestQuotaRow(t *testing.T) {
	for text, want := range map[string]object{
		"H100: gpus=2, memory=100":                            {"instanceType": "H100", "accelerators": int64(2), "memory": "100Gi"},
		"InstanceType=ml.p5.48xlarge,Count=2":                 {"instanceType": "ml.p5.48xlarge", "instances": int64(2)},
		"cpu: example.com/License=3, ephemeral-storage=1.5Ti": {"instanceType": "cpu", "resources": []any{map[string]any{"name": "example.com/License", "quantity": "3"}, map[string]any{"name": "ephemeral-storage", "quantity": "1.5Ti"}}},
		"H100: gpu s=2":                                       nil,
		"H100: example.com/license":                           nil,
	} {
		got, err := quotaRow(text)
		if (err != nil) != (want == nil) {
			t.Errorf("%s: got error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
