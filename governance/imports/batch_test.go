package imports_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"

	"github.com/google/go-cmp/cmp"
)

func TestReadBatch(t *testing.T) {
	for name, tc := range map[string]struct {
		text         string
		want         []v1alpha1.Share
		wantDecay    int64
		wantProblems []string // a part of each
	}{
		"the example of AWS": {
			text:         `{"name": "p", "fairsharePolicy": {"shareDecaySeconds": 3600, "computeReservation": 10, "shareDistribution": [{"shareIdentifier": "HIGHPRI", "weightFactor": 1}, {"shareIdentifier": "MIDPRI", "weightFactor": 3}, {"shareIdentifier": "LOWPRI", "weightFactor": 5}]}}`,
			want:         []v1alpha1.Share{{Name: "highpri", Weight: 15}, {Name: "midpri", Weight: 5}, {Name: "lowpri", Weight: 3}},
			wantDecay:    3600,
			wantProblems: []string{"computeReservation: 10 %"},
		},
		"fractions, and the default factor": {
			text: `{"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.5}, {"shareIdentifier": "b", "weightFactor": 1.5}, {"shareIdentifier": "c"}]}`,
			want: []v1alpha1.Share{{Name: "a", Weight: 6}, {Name: "b", Weight: 2}, {Name: "c", Weight: 3}},
		},
		"what describe-scheduling-policies prints": {
			text:      `{"schedulingPolicies": [{"name": "p", "arn": "x", "fairsharePolicy": {"shareDecaySeconds": 0, "computeReservation": 0, "shareDistribution": [{"shareIdentifier": "team*", "weightFactor": 2.0}]}}, {}]}`,
			want:      []v1alpha1.Share{{Name: "team", Weight: 1}},
			wantDecay: 600, wantProblems: []string{"the first was imported", "not a prefix"},
		},
		"weights that do not fit": {
			text: `{"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.0001}, {"shareIdentifier": "b", "weightFactor": 999.9999}, {"shareIdentifier": "c", "weightFactor": 0.0003}]}`,
			want: []v1alpha1.Share{{Name: "a", Weight: 10000}, {Name: "b", Weight: 1}, {Name: "c", Weight: 3333}}, wantProblems: []string{"rounded"},
		},
		"shares that are none": {
			text:         `{"shareDistribution": [{"shareIdentifier": "a_b"}, {"shareIdentifier": "a"}, {"shareIdentifier": "A"}, {"shareIdentifier": "c", "weightFactor": 0}]}`,
			want:         []v1alpha1.Share{{Name: "a", Weight: 1}},
			wantProblems: []string{"not a valid share", "same share", "not a number above 0"},
		},
		"no such policy":    {text: `{"kind": "Pod"}`, wantProblems: []string{"has no shareDistribution"}},
		"text that is none": {text: `{`, wantProblems: []string{""}},
		"nothing":           {text: ``, wantProblems: []string{"empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := imports.ReadBatch([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got.Shares); diff != "" || got.DecaySeconds != tc.wantDecay {
				t.Errorf("decay %d; shares (-want +got):\n%s", got.DecaySeconds, diff)
			}
			notes := got.Notes()
			if len(notes) != len(tc.wantProblems) {
				t.Fatalf("got problems %q, want %q", notes, tc.wantProblems)
			}
			for i, want := range tc.wantProblems {
				if !strings.Contains(notes[i], want) {
					t.Errorf("got problem %q, want %q", notes[i], want)
				}
			}
		})
	}
}
