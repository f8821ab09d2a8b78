package dashboard

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// HardwareSection is the hardware utilization from Prometheus: the fragment with
// the id hardware.
type HardwareSection struct {
	Off     string // shown instead of all else without Prometheus
	Trouble string // an error as a sentence; empty for none
	AsOf    string // such as "As of 12 s ago, 46 of 48 GPUs have data."
	Gauges  []HardwareGauge
	Chart   *views.Chart // nil for none
	Use     []HardwareUse
	UseLead string // describes it
	Idle    []HardwareIdle
	// IdleLead describes the idle tasks, and IdleMore how many are not shown; empty for
	// none.
	IdleLead, IdleMore string
	// IdleWho and IdleNow are a sentence about idle tasks, without its period: who uses
	// what, and what that costs. Empty for no idle task.
	IdleWho, IdleNow string
	IdleCurrency     string // of their costs; empty without prices
	CSVURL           string
}

// HardwareGauge is one utilization.
type HardwareGauge struct {
	ID     string
	Label  string // such as "GPU utilization"
	Value  string // such as "63.4 %", or "No data"
	Share  float64
	Known  bool
	Detail string // such as "30.4 of 48 GPUs"; empty for none
	Help   string // what it is
}

// HardwareUse is the utilization of the accelerators of a team. Missing values are
// "–".
type HardwareUse struct {
	ID           string
	Name         string // of a team, or of other accelerators
	URL          string // empty for none
	Sub          string // a sentence below the name; empty for none
	Unit         string // such as "GPUs"
	Used         string
	WithData     string
	Busy         string // in accelerators
	Utilization  string
	Meter        bool // whether the row has a meter
	UsedNumber   float64
	BusyNumber   float64
	LargestOfAll float64 // scale of all meters of the unit
}

// HardwareIdle is an admitted task whose accelerators are idle.
type HardwareIdle struct {
	ID, Name, URL string
	Team          string
	Accelerators  string // such as "8"
	Since         string // RFC 3339
	SinceAgo      string // such as "2 h 05 m"
	Peak          string // such as "1.2 %"
	Cost          string // of a month, without the currency
}

// costHead is the head of the costs of idle tasks; none without prices.
func costHead(currency string) []ui.Head {
	if currency == "" {
		return nil
	}
	return ui.Numbers(currency + " a month")
}
