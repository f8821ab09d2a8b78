package tasks

import "kuota.dev/kuota/views"

// UpcomingPage is the live list of waiting tasks in the order in which Kueue tries to
// admit them: the fragment with the id upcoming.
type UpcomingPage struct {
	views.Chrome
	Tabs     []views.Tab
	Action   string // address of the filter form
	Filters  []views.Filter
	ClearURL string // the list without filters; empty if none is set
	Note     string // such as "1,234 tasks waiting"
	Fair     bool   // Kueue compares shares
	Rows     []UpcomingRow
	Pager    views.Pager
	CSVURL   string
	JSONURL  string
}

// UpcomingRow is one waiting task.
type UpcomingRow struct {
	Order TaskCell // "–" if Kueue does not try the task now
	TaskRow
}
