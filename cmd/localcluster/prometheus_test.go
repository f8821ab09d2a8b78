package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Prometheus in the cache is used first, then that of PATH, then Debian's; without any,
// an instance with samples says why it has none.
func TestFindPrometheus(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bin")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("PATH", path)
	program := func(name string) string {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	withSamples := upOptions{console: "kuota", samples: "samples"}
	program(filepath.Join(path, "bash"))
	if err := withSamples.simulated(); err == nil || !strings.Contains(err.Error(), "without apt-get") {
		t.Errorf("without apt: %v", err)
	}
	program(filepath.Join(path, "apt-get"))
	program(filepath.Join(path, "dpkg-deb"))
	for _, want := range []string{"", filepath.Join(path, "prometheus"), filepath.Join(prometheusCache(), "usr", "bin", "prometheus")} {
		if want != "" {
			program(want)
		}
		if got, err := findPrometheus(); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if err := withSamples.simulated(); err != nil {
		t.Error(err)
	}
	if err := (upOptions{console: "kuota"}).simulated(); err == nil {
		t.Error("utilization is simulated without samples")
	}
}
