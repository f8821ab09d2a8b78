package views

import (
	"strings"

	"kuota.dev/kuota/views/ui"
)

// Controls are the filters of a page.
type Controls struct {
	Label    string // accessible name of the form
	Action   string
	Fields   []HiddenField // other parameters of the address
	TextName string        // input name of the search; empty for none
	Text     string        // search text
	Filters  []Filter
	ClearURL string // the page without filters; empty if none is set
	Picker   *RangePicker
}

// Stat is one figure of a summary.
type Stat struct {
	ID    string // stable HTML id
	Label string
	Value string
	Unit  string // shown after the value; empty for none
	Note  string // empty for none
	Bad   bool   // whether it needs attention
}

// PoolNumbers are the amounts of a resource in a pool. Own, Borrowed, Outside, Unhealthy and
// Idle add up to Physical.
type PoolNumbers struct {
	Meter         ui.MeterProps // the mark is the sum of quotas
	Physical      string
	Own, Borrowed string // usage on instances within quota, and borrowed
	Outside       string // by pods that Kueue does not manage
	Unhealthy     string // unused, on nodes that accept no tasks
	Idle          string
	Quota         string
	Over          string // such as "over capacity by 2"; empty if the quota fits
	Largest       string // free on one node
}

// excelURL returns the address of a CSV file with a byte order mark.
func excelURL(csv string) string {
	if strings.Contains(csv, "?") {
		return csv + "&bom=1"
	}
	return csv + "?bom=1"
}
