package kueueconfig_test

import (
	"testing"

	"kuota.dev/kuota/governance/kueueconfig"
)

// FuzzWant looks for a configuration that makes Want panic, or that it goes on
// changing when it sees its own result.
func FuzzWant(f *testing.F) {
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
				t.Errorf("refused with %v, and changed all the same", err)
			}
			return
		}
		again, err := kueueconfig.ForPolicy(kueueconfig.Current{Text: got.Text, Args: got.Args, Image: current}, policy)
		if err != nil || again.ConfigChanged || again.ArgsChanged {
			t.Errorf("%v; first:\n%s\nthen:\n%s", err, got.Text, again.Text)
		}
	})
}
