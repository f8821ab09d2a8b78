package live

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/kueue/simulate"
)

// VersionNote returns what a page says about a report if the cluster does not run
// the minor version of Kueue that simulates, or sets feature gates that this version
// does not have; empty if there is nothing to say. The report may be nil.
func VersionNote(s *simulate.Snapshot, r *simulate.Report) string {
	return versionNote(ModuleVersion(), s, r)
}

func versionNote(own string, s *simulate.Snapshot, r *simulate.Report) string {
	if own == "" {
		return ""
	}
	var notes []string
	if theirs := minorOf(s.KueueVersion); theirs != "" && theirs != minorOf(own) {
		notes = append(notes, fmt.Sprintf("The cluster runs Kueue %s, and this is simulated with %s, which can decide differently.", s.KueueVersion, own))
	}
	if r != nil && len(r.UnknownGates) > 0 {
		what := "feature gate"
		if len(r.UnknownGates) > 1 {
			what += "s"
		}
		notes = append(notes, fmt.Sprintf("Kueue %s does not have the %s %s of the cluster.", own, what, strings.Join(r.UnknownGates, ", ")))
	}
	return strings.Join(notes, " ")
}

// minorOf returns the minor version of a version such as v0.19.2: v0.19.
func minorOf(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if minor == "" {
		return ""
	}
	return major + "." + minor
}
