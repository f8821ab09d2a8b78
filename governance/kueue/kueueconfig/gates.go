package kueueconfig

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Feature gates of Kueue whose effect pages show.
const (
	GateReasons        = "UnadmittedWorkloadsObservability"
	GateExplicitStatus = "UnadmittedWorkloadsExplicitStatus"
	GateHashing        = "SchedulingEquivalenceHashing"
	GateVisibility     = "VisibilityOnDemand"
	GateDefaultClass   = "WorkloadPriorityClassDefaulting"
	GateAdmission      = "AdmissionGatedBy"
)

// Feature gates of Kueue that pages show only if they are set: they are off by
// default in all known versions.
const (
	GateBoost           = "PriorityBoost"
	GateDynamicQuota    = "DynamicQuotaOrchestration"
	GatePreemption      = "ConfigurablePreemption"
	GateQuotaAutomation = "MultiKueueManagerQuotaAutomation"
)

// Gate is the state of one of Kueue's feature gates.
type Gate struct {
	Name      string
	Enabled   bool
	Explicit  bool // set by an admin; otherwise the version's default applies
	Supported bool // the version has the gate; false if the version is unknown
}

// gateHistory lists, for each gate, the minor version of Kueue that introduced
// it, and the one that enabled it by default; 0 for never. Versions after
// latestMinor are unknown. Those of 0.20 are of its sources before the release.
var gateHistory = []struct {
	name     string
	from, on int
	optional bool // Gates returns it only if it is set
}{
	{GateReasons, 19, 20, false},
	{GateExplicitStatus, 19, 0, false},
	{GateHashing, 17, 18, false},
	{GateVisibility, 6, 9, false},
	{GateDefaultClass, 18, 20, false},
	{GateAdmission, 17, 19, false},
	{gateName, 19, 0, false},
	{GateBoost, 17, 0, true},
	{GateDynamicQuota, 20, 0, true},
	{GatePreemption, 20, 0, true},
	{GateQuotaAutomation, 18, 0, true},
}

const latestMinor = 20

// Gates returns the gates that matter to Kuota, in a fixed order. For an
// unknown version, only gates that are set are supported.
func Gates(seen Current) ([]Gate, error) {
	d, a, err := parse(seen)
	if err != nil {
		return nil, err
	}
	v := versionOf(seen.Image)
	var gates []Gate
	for _, h := range gateHistory {
		g := Gate{Name: h.name, Supported: v.known() && v.minor >= h.from && v.minor <= latestMinor}
		value, set := d.gate(a, h.name)
		g.Explicit = set
		g.Enabled = value == "true" || !set && g.Supported && h.on > 0 && v.minor >= h.on
		if set || !h.optional {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// FeatureGates returns the gates that an admin set: those of the argument
// --feature-gates, which replaces those of the configuration.
func FeatureGates(seen Current) (map[string]bool, error) {
	d, a, err := parse(seen)
	if err != nil {
		return nil, err
	}
	var names []string
	if a.gatesIndex >= 0 {
		for pair := range strings.SplitSeq(strings.TrimPrefix(a.list[a.gatesIndex], a.gatesPrefix), ",") {
			name, _, _ := strings.Cut(pair, "=")
			names = append(names, strings.TrimSpace(name))
		}
	} else if section := d.section(featureGates); section != nil {
		for i := 0; i+1 < len(section.Content); i += 2 {
			names = append(names, section.Content[i].Value)
		}
	}
	gates := map[string]bool{}
	for _, name := range names {
		if value, set := d.gate(a, name); set && name != "" {
			gates[name] = value == "true"
		}
	}
	return gates, nil
}

// GateEnabled reports whether a gate of this package is on. It is false if the
// configuration cannot be read.
func GateEnabled(seen Current, name string) bool {
	gates, err := Gates(seen)
	return err == nil && slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == name && g.Enabled })
}

// DefaultPriorityClass returns the WorkloadPriorityClass with which Kueue labels
// jobs that have none, if it exists; empty if Kueue labels no jobs. In an unknown
// version the gate counts as on.
func DefaultPriorityClass(seen Current) string {
	gates, _ := Gates(seen)
	for _, g := range gates {
		if v := versionOf(seen.Image); g.Name == GateDefaultClass && !g.Enabled && (g.Explicit || v.known() && v.minor <= latestMinor) {
			return ""
		}
	}
	return "default" // a constant of Kueue
}

// Version returns Kueue's version by the tag of its image, such as v0.19.2;
// empty if the tag has none. older reports whether it is older than 0.minor.
func Version(image string, minor int) (text string, older bool) {
	v := versionOf(image)
	return v.text, v.known() && v.minor < minor
}

// setGates sets gates where Kueue's gates are configured.
func (d *document) setGates(a *arguments, gates map[string]bool) {
	for _, h := range gateHistory { // in that order
		if value, asked := gates[h.name]; asked {
			d.writeGate(a, h.name, value, h.name)
		}
	}
}

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
