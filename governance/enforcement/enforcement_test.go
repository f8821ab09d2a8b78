package enforcement_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"kuota.dev/kuota/governance/enforcement"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const manifest = "../../deploy/rbac/enforcement.yaml"

var update = flag.Bool("update", false, "write "+manifest+" anew")

// What is installed is what this package builds.
func TestManifest(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("# Made by governance/enforcement: go test ./governance/enforcement -update\n")
	policies, bindings := enforcement.Policies()
	for i := range policies {
		for _, object := range []any{policies[i], bindings[i]} {
			text, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			want.WriteString("---\n")
			want.Write(bytes.ReplaceAll(text, []byte("status: {}\n"), nil))
		}
	}
	if *update {
		if err := os.WriteFile(manifest, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want.String()); diff != "" {
		t.Errorf("%s (-is +should be):\n%s", manifest, diff)
	}
}
