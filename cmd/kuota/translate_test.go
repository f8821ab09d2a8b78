package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota/catalog"
)

// A whole node is all accelerators that the catalog has of its type.
func TestTranslateWholeNodes(t *testing.T) {
	for _, instance := range catalog.KnownTypes() {
		var out, messages bytes.Buffer
		root := newRoot(streams{out: &out, messages: &messages})
		root.SetArgs([]string{"translate", "hyp", "create", "hyp-pytorch-job", "--job-name", "a", "--instance-type", instance, "--command", "[a]"})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		known, _ := catalog.Known(instance)
		want := ""
		if known.Accelerators > 0 {
			want = fmt.Sprintf(" --gpus %d", known.Accelerators)
		}
		if line := "kuota run --detach --name a --pool " + instance + want + " -- a"; strings.TrimSpace(out.String()) != line || (messages.Len() > 0) != (want == "") {
			t.Errorf("got %s%s, want %s", out.String(), messages.String(), line)
		}
	}
}
