package kueueconfig_test

import (
	"testing"

	"kuota.dev/kuota/governance/kueue/kueueconfig"
)

// FuzzForPolicy searches for a configuration for which ForPolicy panics, or changes
// its own result.
func FuzzForPolicy(f *testing.F) {
	for _, name := range []string{"release", "gang", "old", "oneline"} {
		f.Add(seenOf(f, name, current).Text, "", true)
	}
	f.Add(head+"featureGates: {A: true}\n\n# end\n...\n", "--feature-gates=", false)
	f.Fuzz(func(t *testing.T, text, arg string, on bool) {
		policy := policyOf(t, neither)
		if on {
			policy = policyOf(t, both)
		}
		seen := kueueconfig.Current{Text: text, Args: []string{arg}, Image: current}
		got, err := kueueconfig.ForPolicy(seen, policy)
		if err != nil {
			if got.Text != text || got.ConfigChanged || got.ArgsChanged {
				t.Errorf("changed although it failed with %v", err)
			}
			return
		}
		again, err := kueueconfig.ForPolicy(kueueconfig.Current{Text: got.Text, Args: got.Args, Image: current}, policy)
		if err != nil || again.ConfigChanged || again.ArgsChanged {
			t.Errorf("%v; first:\n%s\nthen:\n%s", err, got.Text, again.Text)
		}
	})
}
