package tasks

import "kuota.dev/kuota/views"

// PastPage lists finished and deleted tasks from history.
type PastPage struct {
	views.Chrome
	Trouble  string // why there is no list; empty otherwise
	Action   string // address of the filter form
	Text     string // search text
	Filters  []views.Filter
	From, To string // range of submission days, such as 2026-11-22; empty: unbounded
	Wrong    string // an invalid day, as a sentence; empty for none
	ClearURL string // the list without filters; empty if none is set
	Rows     []views.PastRow
	Pager    views.Pager
	CSVURL   string
}

// PastTask is the page of a deleted task.
type PastTask struct {
	views.Chrome
	Name, Namespace string
	Team, TeamURL   string // TeamURL is empty for a task without a team
	Status          views.Status
	Lead            string
	Facts           []views.ValueLine
	Submitted       string // RFC 3339, like the others; empty if unknown
	Ended, Deleted  string
	Timeline        []TimelineLine
	Elastic         *ElasticTask       // nil for a task that was not elastic
	Others          []PastLink         // other tasks with this name
	Logs            views.ExternalLink // of its pods, which do not exist any more
	Dashboard       views.ExternalLink
	Actions         *TaskActions // nil for none
	ActivityURL     string
}

// PastLink links to another task with the same name.
type PastLink struct {
	Task      views.TaskLink
	Status    views.Status
	Submitted string // RFC 3339
}
