package bulk

import "kuota.dev/kuota/views"

// ProgressPage shows how far a change of many objects is. Its live part is the fragment with
// the id bulk.
type ProgressPage struct {
	views.Chrome
	Heading           string // such as "Stop 200 tasks"
	BackURL           string
	Status            views.Status
	Done, Failed, All int
	Problems          []ProgressRow // what was not changed, and why
	Rows              []ProgressRow // all others
}

// ProgressRow is one object.
type ProgressRow struct {
	Name, Team, URL string
	Status          views.Status
	Problem         string
}
