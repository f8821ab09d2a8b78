package views

import "kuota.dev/kuota/views/ui"

// DepartmentTable is departments and teams with their sums, as a tree.
type DepartmentTable struct {
	ID, Title, Note string
	Rows            []DepartmentLine
	CSVURL          string // empty for none
	NewURL          string // the form of a new department; empty for none
}

// DepartmentLine is a department, a team in it, or its reserve.
type DepartmentLine struct {
	ID, Name, URL                                   string
	Sub                                             string // empty for none
	Level                                           int    // 0 at the top
	Team                                            bool
	Status                                          Status        // of a department that is not applied; no label otherwise
	Meter                                           ui.MeterProps // empty for none
	Quota, Allocated, Reserve, Used, Borrowed, Lent string        // without a unit; "–" for none
	Borrowing                                       bool          // whether more than the quota is used
	Running, Waiting                                Count
}
