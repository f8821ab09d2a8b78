package kuota_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
)

// oneVersion are the modules that are compiled on one machine by make run and make
// test. Packages of a dependency are compiled once only if its versions are equal.
var oneVersion = []string{".", "cmd/localcluster", "deploy/charttest"}

// TestVersions checks that modules which share a dependency require the same version
// of it.
func TestVersions(t *testing.T) {
	first := map[string]struct{ folder, version string }{}
	shared := 0
	for _, folder := range oneVersion {
		versions := moduleVersions(t, folder)
		if len(versions) < 50 {
			t.Fatalf("%s: found only %d dependencies", folder, len(versions))
		}
		for path, version := range versions {
			other, found := first[path]
			switch {
			case !found:
				first[path] = struct{ folder, version string }{folder, version}
			case other.version != version:
				t.Errorf("%s: %s in %s, %s in %s: run go get %s@VERSION in both, with the higher one", path, other.version, other.folder, version, folder, path)
			default:
				shared++
			}
		}
	}
	if shared < 50 {
		t.Errorf("found only %d shared dependencies", shared)
	}
}

// moduleVersions returns the version of each dependency of the module in a folder, as
// its go.mod requires or replaces it.
func moduleVersions(t *testing.T, folder string) map[string]string {
	t.Helper()
	name := filepath.Join(folder, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		if versions[r.Old.Path] == "" {
			continue
		}
		if versions[r.Old.Path] = r.New.Version; r.New.Version == "" { // by a folder
			delete(versions, r.Old.Path)
		}
	}
	return versions
}
