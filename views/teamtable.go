package views

import "kuota.dev/kuota/views/ui"

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
	Sub                             string        // empty for none
	Held                            Status        // of a queue that admits no tasks; no label otherwise
	Meter                           ui.MeterProps // usage and what is allocated; empty for none
	Allocated, Used, Borrowed, Lent string        // without a unit
	Utilization                     string        // such as "53.33 %"; "–" without quota
	Borrowing                       bool          // usage exceeds the quota
	Running, Waiting                Count
}
