package kuota_test

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSBOM checks that make sbom lists exactly the modules that are linked into the
// binary. make verify runs it.
func TestSBOM(t *testing.T) {
	if os.Getenv("KUOTA_VERIFY") == "" {
		t.Skip("run by make verify")
	}
	if out, err := exec.Command("make", "--no-print-directory", "sbom").CombinedOutput(); err != nil {
		t.Fatalf("make sbom: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(".local", "kuota.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		Format   string `json:"bomFormat"`
		Metadata struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.Format != "CycloneDX" || bom.Metadata.Component.Name != strings.TrimSuffix(module, "/") || bom.Metadata.Component.Version == "" {
		t.Errorf("got format %q of %+v, want CycloneDX of this module with its version", bom.Format, bom.Metadata.Component)
	}
	binary, err := buildinfo.ReadFile(filepath.Join(".local", "bin", "kuota"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.Fields(binary.GoVersion)[0]}
	for _, m := range binary.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
		if !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("component %s has the package URL %q", c.Name, c.PURL)
		}
	}
	for _, m := range want {
		if !slices.Contains(got, m) {
			t.Errorf("module %s is missing", m)
		}
	}
	if len(got) != len(want) || len(want) < 20 {
		t.Errorf("got %d components, want %d", len(got), len(want))
	}
}
