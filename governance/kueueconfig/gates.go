package kueueconfig

// Gates of Kueue that people see the effect of.
const (
	GateReasons        = "UnadmittedWorkloadsObservability"
	GateExplicitStatus = "UnadmittedWorkloadsExplicitStatus"
	GateHashing        = "SchedulingEquivalenceHashing"
	GateVisibility     = "VisibilityOnDemand"
)

// Gate is one of Kueue's gates, as it is in force.
type Gate struct {
	Name      string
	Enabled   bool
	Explicit  bool // by somebody; otherwise it is as that version has it by default
	Supported bool // whether that version has it, as far as its version is known
}

// history is where Kueue's source has a gate: from which minor version, and
// from which it is on by default; 0 for never. Versions after latest are not
// known here.
var gateHistory = []struct {
	name     string
	from, on int
}{
	{GateReasons, 19, 20},
	{GateExplicitStatus, 19, 20},
	{GateHashing, 17, 18},
	{GateVisibility, 6, 9},
	{gateName, 19, 0},
}

const latestMinor = 20

// Gates are those that matter here, in a fixed order. Which of them a Kueue of
// unknown version has is not known, except for those that are set.
func Gates(seen Current) ([]Gate, error) {
	d, err := read(seen.Text)
	if err != nil {
		return nil, err
	}
	a, err := argsOf(seen.Args, d)
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
		gates = append(gates, g)
	}
	return gates, nil
}

// Version is Kueue's by its image's tag, such as v0.19.2; empty when that does
// not tell. older says that it is before 0.minor.
func Version(image string, minor int) (text string, older bool) {
	v := versionOf(image)
	return v.text, v.known() && v.minor < minor
}

// withGates sets gates where Kueue's gates are.
func (d *document) setGates(a *arguments, gates map[string]bool) {
	for _, h := range gateHistory { // in that order
		if value, asked := gates[h.name]; asked {
			d.writeGate(a, h.name, value, h.name)
		}
	}
}
