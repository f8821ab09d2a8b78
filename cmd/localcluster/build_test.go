package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testMod = "module kuota.dev/kuota/cmd/localcluster\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n"

func TestStampNameChangesWithVersionsAndFlags(t *testing.T) {
	flags, err := linkFlags(testMod)
	if err != nil {
		t.Fatal(err)
	}
	one := stampName(stampPrefix, binaries, []byte("a h1:x"), flags)
	if one != stampName(stampPrefix, binaries, []byte("a h1:x"), flags) {
		t.Error("the same inputs give two names")
	}
	if one == stampName(stampPrefix, binaries, []byte("a h1:y"), flags) {
		t.Error("other checksums give the same name")
	}
	if one == stampName(stampPrefix, binaries, []byte("a h1:x"), flags+" -race") {
		t.Error("other flags give the same name")
	}
}

func TestLinkFlagsSetTheVersion(t *testing.T) {
	flags, err := linkFlags(testMod)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"component-base/version.gitVersion=v1.36.3", "gitMinor=36", "client-go/pkg/version.gitVersion=v1.36.3"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q does not contain %q", flags, want)
		}
	}
	if _, err := linkFlags("module x\n"); err == nil {
		t.Error("a go.mod without Kubernetes is accepted")
	}
}

func TestBuildIsIncompleteWithoutEveryFile(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "bin")
	set := buildSet{prefix: stampPrefix, tools: binaries, files: []string{kueueInstall(bin)}}
	files := []string{set.stamp(bin), kueueInstall(bin)}
	for _, b := range binaries {
		files = append(files, filepath.Join(bin, b.name))
	}
	for _, f := range files {
		if set.isBuilt(bin) {
			t.Fatalf("the build is complete without %s", f)
		}
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !set.isBuilt(bin) {
		t.Error("the build is incomplete although all files exist")
	}
}

func TestBuildRunsOnceForEachSetOfVersions(t *testing.T) {
	bin, runs := t.TempDir(), 0
	do := func() error { runs++; return nil }
	for _, step := range []struct {
		sums     string
		wantRuns int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"a", 3}} {
		if err := (buildSet{prefix: stampPrefix, sums: []byte(step.sums)}).build(bin, do); err != nil {
			t.Fatal(err)
		}
		if runs != step.wantRuns {
			t.Errorf("after a build with checksums %q: built %d times, want %d", step.sums, runs, step.wantRuns)
		}
	}
	failed := errors.New("failed")
	set := buildSet{prefix: stampPrefix, sums: []byte("c")}
	if err := set.build(bin, func() error { return failed }); !errors.Is(err, failed) || set.isBuilt(bin) {
		t.Errorf("after a failed build: error %v, isBuilt %v", err, set.isBuilt(bin))
	}
}

func TestSetDelaysRemovesTheJitterOnly(t *testing.T) {
	stage := map[string]any{
		"metadata": map[string]any{"name": "pod-complete"},
		"spec": map[string]any{"delay": map[string]any{
			"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000, "durationFrom": "kept",
		}},
	}
	setDelays(stage)
	delay := stage["spec"].(map[string]any)["delay"].(map[string]any)
	if _, found := delay["jitterDurationMilliseconds"]; found {
		t.Error("the jitter still shortens the delay")
	}
	if delay["durationFrom"] != "kept" {
		t.Error("the annotation is no longer read")
	}
}
