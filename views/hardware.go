package views

// HardwareSection is how busy the hardware is, as Prometheus says: the fragment
// with the id hardware.
type HardwareSection struct {
	Off     string // a sentence instead of all else where no Prometheus is asked; else empty
	Trouble string // a sentence about what went wrong; empty for nothing
	AsOf    string // such as "As of 12 s ago, 46 of 48 GPUs have data."
	Gauges  []HardwareGauge
	Chart   *Chart // nil for none
	Use     []HardwareUse
	Idle    []HardwareIdle
	// IdleLead says which tasks these are, and IdleMore how many are not shown; empty
	// for none.
	IdleLead, IdleMore string
	CSVURL             string
}

// HardwareGauge is one share.
type HardwareGauge struct {
	ID     string
	Label  string // such as "GPU utilization"
	Value  string // such as "63.4 %", or "No data"
	Share  float64
	Known  bool
	Detail string // such as "30.4 of 48 GPUs"; empty for nothing
	Help   string // what it is
}

// HardwareUse is what some accelerators do. Figures are "–" where there are none.
type HardwareUse struct {
	ID           string
	Name         string // of a team, or what the row is instead
	URL          string // empty for no page
	Sub          string // a sentence below the name; empty for none
	Unit         string // such as "GPUs"
	Used         string
	WithData     string
	Busy         string // in accelerators
	Utilization  string
	Meter        bool // whether it is drawn
	UsedNumber   float64
	BusyNumber   float64
	LargestOfAll float64 // that the meters of one unit share
}

// HardwareIdle is a task that holds accelerators and does nothing with them.
type HardwareIdle struct {
	ID, Name, URL string
	Team          string
	Accelerators  string // such as "8"
	Since         string // RFC 3339
	SinceAgo      string // such as "2 h 05 m"
	Peak          string // such as "1.2 %"
}
