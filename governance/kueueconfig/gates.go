package kueueconfig

// Feature gates of Kueue whose effect pages show.
const (
	GateReasons        = "UnadmittedWorkloadsObservability"
	GateExplicitStatus = "UnadmittedWorkloadsExplicitStatus"
	GateHashing        = "SchedulingEquivalenceHashing"
	GateVisibility     = "VisibilityOnDemand"
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
// latestMinor are unknown.
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

// Gates returns the gates that matter to Kuota, in a fixed order. For an
// unknown version, only gates that are set are supported.
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
