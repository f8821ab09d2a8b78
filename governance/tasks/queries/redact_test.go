package queries

import (
	"testing"
)

func TestRedact(t *testing.T) {
	names := &redactor{
		names: map[string]bool{"hyperpod-ns-language-clusterqueue": true, "hyperpod-ns-language": true, "b.example": true},
		own:   map[string]bool{"hyperpod-ns-vision-clusterqueue": true},
	}
	for text, want := range map[string]string{
		"Preempted to accommodate a workload (UID: 1) due to reclamation; preemptor path: /shared-pool/hyperpod-ns-language-clusterqueue; preemptee path: /shared-pool/hyperpod-ns-vision-clusterqueue": "Preempted to accommodate a workload (UID: 1) due to reclamation; preemptor path: /shared-pool/another team; preemptee path: /shared-pool/hyperpod-ns-vision-clusterqueue",
		"preemptor path: /shared-pool/hyperpod-ns-deleted-clusterqueue; preemptee path: /hyperpod-ns-vision-clusterqueue":                                                                               "preemptor path: /shared-pool/another team; preemptee path: /hyperpod-ns-vision-clusterqueue",
		"hyperpod-ns-language.":                  "another team.",
		`"hyperpod-ns-language"`:                 `"another team"`,
		"hyperpod-ns-language-2 is another":      "hyperpod-ns-language-2 is another",
		"in b.example, b.example.com":            "in another team, b.example.com",
		"insufficient quota for ml.p5.48xlarge.": "insufficient quota for ml.p5.48xlarge.",
	} {
		if got := names.redact(text); got != want {
			t.Errorf("redact(%q) = %q, want %q", text, got, want)
		}
	}
}
