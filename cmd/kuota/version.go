package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version and revision are set by the linker: -X main.version=… in the Makefile
// and the Dockerfile.
var version, revision string

// unknown is shown for what the binary does not contain.
const unknown = "unknown"

// build describes the binary. Its fields are never empty.
type build struct {
	version  string // such as v0.3.1
	revision string // commit, with the suffix -dirty if files were changed
	goVersion,
	platform string // such as linux/amd64
}

// thisBuild returns the build of this binary.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return newBuild(version, revision, info)
}

// newBuild completes what the linker set with what the go command recorded. info
// may be nil.
func newBuild(version, revision string, info *debug.BuildInfo) build {
	recorded := build{}
	if info != nil {
		if info.Main.Version != "(devel)" {
			recorded.version = info.Main.Version
		}
		dirty := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				recorded.revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		if recorded.revision != "" {
			recorded.revision += dirty
		}
	}
	return build{
		version: cmp.Or(version, recorded.version, unknown), revision: cmp.Or(revision, recorded.revision, unknown),
		goVersion: runtime.Version(), platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// String returns the build in one line, as the version command prints it.
func (b build) String() string {
	return fmt.Sprintf("kuota %s, revision %s, %s, %s", b.version, b.revision, b.goVersion, b.platform)
}

// metric returns kuota_build_info.
func (b build) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kuota_build_info", Help: "Always 1; the labels contain the version of the console.",
		ConstLabels: prometheus.Labels{"version": b.version, "revision": b.revision, "goversion": b.goVersion},
	}, func() float64 { return 1 })
}

const versionUsage = `usage: kuota version

Prints the version and the revision of this binary.
`

// versionCommand prints the build of this binary.
func versionCommand(_ context.Context, args []string, s streams) error {
	if err := parse(flag.NewFlagSet("kuota version", flag.ContinueOnError), args, false, versionUsage); err != nil {
		return err
	}
	fmt.Fprintln(s.out, thisBuild())
	return nil
}
