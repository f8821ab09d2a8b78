package kueueconfig

import (
	"regexp"
	"strconv"
)

// version is a release of Kueue, as far as its image shows it.
type version struct {
	text  string // as in the tag, with a v; empty when unknown
	minor int    // of 0.minor; later majors count as above every minor
}

var tag = regexp.MustCompile(`:v?((\d+)\.(\d+)\.\d+(?:[-.]\w[\w.-]*)?)(?:@.*)?$`)

// versionOf reads the version from an image's tag. A digest, a branch and a tag
// of somebody's own tell none.
func versionOf(image string) version {
	m := tag.FindStringSubmatch(image)
	if m == nil {
		return version{}
	}
	minor, err := strconv.Atoi(m[3])
	if err != nil {
		return version{}
	}
	if m[2] != "0" {
		minor = 1 << 20
	}
	return version{text: "v" + m[1], minor: minor}
}

func (v version) known() bool { return v.text != "" }

// knowsGate tells whether this version has the gate DisableWaitForPodsReady.
// It came with 0.19, and Kueue's source says that it goes with 0.21; a Kueue
// that does not know a gate it is given does not start.
func (v version) hasGate() bool { return v.minor == 19 || v.minor == 20 }
