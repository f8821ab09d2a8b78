package views

import (
	"strings"

	"kuota.dev/kuota/views/ui"
)

// DashboardPage shows capacity, usage and teams. All below its filters is the
// fragment with the id dashboard.
type DashboardPage struct {
	Chrome
	Loops      *LoopNotice // current preemption loops; nil for none
	Controls   Controls
	Stats      []Stat
	Pools      PoolTable
	UsageChart Chart
	Hardware   HardwareSection
	Teams      TeamTable
	Bars       BarList
	Classes    []ClassRow
	// ClassNote is the time range of the class figures; ClassLeft is a sentence about
	// tasks that the averages omit, empty for none.
	ClassNote, ClassLeft, ClassCSVURL string
	Trends                            Trends
}

// Trends are charts of what happened to tasks over a range, with a line for each
// priority class or team.
type Trends struct {
	Note   string      // the range
	Links  []RangeLink // to the same charts with other lines
	Empty  string      // shown instead of charts
	More   string      // a sentence about lines that are not shown; empty for none
	Charts []Chart
}

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

// PoolTable is the capacity and usage of each pool.
type PoolTable struct {
	Note    string
	Lines   []PoolUse
	More    string // a sentence about pools that are not shown; empty for none
	MoreURL string
	CSVURL  string
}

// PoolUse is one resource of one pool.
type PoolUse struct {
	ID, Name, URL string
	Sub           string // such as "H100 · 2 instances"
	Trouble       string // such as "1 pending recovery"; empty for none
	Unit          string
	PoolNumbers
	Unplaced         string
	UnplacedBorrowed string // the borrowed part of Unplaced, such as "2 borrowed"; empty for none
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
	Over          string // such as "oversubscribed by 2"; empty if the quota fits
	Largest       string // free on one node
}

// TeamTable is the quota and usage of teams.
type TeamTable struct {
	ID       string
	Note     string // such as "GPUs in all pools"
	Heads    []ui.Head
	Rows     []TeamLine
	Other    *TeamLine // the teams that are not in Rows; nil for none
	Sum      TeamLine  // of Rows and Other
	Pager    Pager
	CSVURL   string
	AllURL   string // the whole table; empty if this is it
	ClearURL string // the table without the search; empty if there is none
}

// TeamLine is one team.
type TeamLine struct {
	ID, Name, URL                   string
	Sub                             string // empty for none
	Held                            Status // of a queue that admits no tasks; no label otherwise
	Allocated, Used, Borrowed, Lent string // without a unit
	Utilization                     string // such as "53.33 %"; "–" without quota
	Borrowing                       bool   // usage exceeds the quota
	Running, Waiting                Count
}

// TeamsPage is the list of teams. The table is the fragment with the id teams.
type TeamsPage struct {
	Chrome
	Controls Controls
	Teams    TeamTable
	Shares   *Shares // nil for none
}

// excelURL returns the address of a CSV file with a byte order mark.
func excelURL(csv string) string {
	if strings.Contains(csv, "?") {
		return csv + "&bom=1"
	}
	return csv + "?bom=1"
}
