package main

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestNewBuild(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.2.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}},
	}
	clean := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}}
	for name, c := range map[string]struct {
		version, revision         string
		info                      *debug.BuildInfo
		wantVersion, wantRevision string
	}{
		"set by the linker":       {"v0.3.0", "def", recorded, "v0.3.0", "def"},
		"recorded by go":          {"", "", recorded, "v0.2.0", "abc-dirty"},
		"recorded without a tag":  {"", "", clean, unknown, "abc"},
		"neither":                 {"", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, unknown, unknown},
		"modified, but of what":   {"", "", &debug.BuildInfo{Settings: recorded.Settings[:1]}, unknown, unknown},
		"without any information": {"", "", nil, unknown, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := newBuild(c.version, c.revision, c.info)
			if diff := cmp.Diff([]string{c.wantVersion, c.wantRevision}, []string{got.version, got.revision}); diff != "" {
				t.Errorf("version and revision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionCommand(t *testing.T) {
	set(t, "v0.3.0", "def")
	var out bytes.Buffer
	if err := commands()["version"].run(t.Context(), nil, streams{out: &out}); err != nil {
		t.Fatal(err)
	}
	want := "kuota v0.3.0, revision def, " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := commands()["version"].run(t.Context(), []string{"now"}, streams{out: &out}); err == nil || !strings.Contains(err.Error(), `"now"`) {
		t.Errorf("an argument: error %v, want one that names it", err)
	}
}

func TestSettingsShowTheVersion(t *testing.T) {
	set(t, "v0.3.0", "def")
	if got := (config{}).setup(); got.Version != "v0.3.0" || got.Revision != "def" {
		t.Errorf("version %q, revision %q, want v0.3.0 and def", got.Version, got.Revision)
	}
}

func TestBuildInfoMetric(t *testing.T) {
	const want = `
# HELP kuota_build_info Always 1; the labels contain the version of the console.
# TYPE kuota_build_info gauge
kuota_build_info{goversion="go1",revision="def",version="v0.3.0"} 1
`
	if err := testutil.CollectAndCompare(build{version: "v0.3.0", revision: "def", goVersion: "go1"}.metric(), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// set sets what the linker sets, until the test ends.
func set(t *testing.T, v, r string) {
	t.Helper()
	oldVersion, oldRevision := version, revision
	version, revision = v, r
	t.Cleanup(func() { version, revision = oldVersion, oldRevision })
}
