package usage

import (
	"strings"

	"kuota.dev/kuota/views"
)

// UsagePage is the report of who used which compute over a range of days.
type UsagePage struct {
	views.Chrome
	OneTeam   string // whose usage it is; empty for several
	Trouble   string // why there is no report; empty otherwise
	Action    string // address of the form
	Links     []views.RangeLink
	From, To  string // days, such as 2026-11-22
	Wrong     string // a sentence about an invalid day; empty for none
	Zone      string // time zone, such as Europe/Berlin
	ZoneWrong string // a sentence; empty for none
	Filters   []views.Filter
	ClearURL  string // the report without choices; empty if none is set
	Note      string // range, time zone and unit
	OnPaper   string // of what and until when the report is, as a sentence for prints
	Stats     []views.Stat
	Chart     *views.Chart // nil for none
	ChartNote string       // why there is no chart; empty for none
	Rows      UsageTable   // by team, or what the reader chose
	Pools     UsageTable
	Whole     bool   // the rows add up to the capacity
	Prices    string // what prices apply, as a sentence; empty for none
	PricesURL string // form of the prices; empty for readers who cannot change them
	CSVURL    string
	JSONURL   string
}

// UsageTable is a table of hours.
type UsageTable struct {
	First string   // head of the names, such as Team
	Heads []string // of the figures
	Rows  []UsageRow
	Sum   UsageRow
}

// UsageRow is one row of a UsageTable.
type UsageRow struct {
	ID      string // stable HTML id
	Name    string
	URL     string // empty for none
	Sub     string // a phrase below the name; empty for none
	Figures []string
}

// byName returns the title of a table, such as "By team".
func byName(t UsageTable) string { return "By " + strings.ToLower(t.First) }
