package kueueconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeatureGates(t *testing.T) {
	const text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates:\n  PartialAdmission: false\n  PriorityBoost: true\n"
	for name, tc := range map[string]struct {
		seen Current
		want map[string]bool
	}{
		"in the configuration": {seen: Current{Text: text}, want: map[string]bool{"PartialAdmission": false, "PriorityBoost": true}},
		"none":                 {seen: Current{Text: "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"}, want: map[string]bool{}},
		"as an argument": {
			seen: Current{Text: "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n", Args: []string{"--config=/a", "--feature-gates=PartialAdmission=0, FlavorFungibility=TRUE"}},
			want: map[string]bool{"PartialAdmission": false, "FlavorFungibility": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FeatureGates(tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("gates differ (-want +got):\n%s", diff)
			}
		})
	}
}
