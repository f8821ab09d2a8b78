package kueueconfig

import (
	"regexp"
	"strconv"
)

// version is a release of Kueue, by the tag of its image.
type version struct {
	text  string // as in the tag, with a v; empty when unknown
	minor int    // of 0.minor; later majors count as above every minor
}

var tag = regexp.MustCompile(`:v?((\d+)\.(\d+)\.\d+(?:[-.]\w[\w.-]*)?)(?:@.*)?$`)

// versionOf parses the version from an image's tag. It is unknown for a digest,
// a branch or a custom tag.
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

// hasGate reports whether this version has the gate DisableWaitForPodsReady.
// Kueue 0.19 introduced it, and its source announces the removal in 0.21. Kueue
// does not start with an unknown gate.
func (v version) hasGate() bool { return v.minor == 19 || v.minor == 20 }
