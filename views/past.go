package views

// PastPage is the list of tasks that ended, deleted ones too, from history.
type PastPage struct {
	Chrome
	Trouble  string // why nothing is listed; empty where there is a list
	Action   string // where the filters are sent
	Text     string // searched for
	Filters  []Filter
	From, To string // days of submission, such as 2026-11-22; empty for any
	Wrong    string // a sentence on a day that cannot be; empty for nothing
	ClearURL string // the list without its filters; empty when it has none
	Rows     []PastRow
	Pager    Pager
	CSVURL   string
}

// PastRow is one task that ended.
type PastRow struct {
	ID            string // stable HTML id of the row
	Task          TaskLink
	Kind          string
	Status        Status // Text is "deleted" and the like; empty for nothing
	Team          string // "–" for none
	Namespace     string
	PriorityClass string
	Requests      string
	Pool          string
	Submitted     string // RFC 3339
	Ended         string // RFC 3339; empty for not known
	Ran           string
	Preemptions   string
}

// PastTask is the page of a task that is no more.
type PastTask struct {
	Chrome
	Name, Namespace string
	Team, TeamURL   string // TeamURL is empty for a task of no team
	Status          Status
	Lead            string
	Facts           []ValueLine
	Submitted       string // RFC 3339, as the others; empty for not known
	Ended, Deleted  string
	Timeline        []TimelineLine
	Others          []PastLink // of the same name
}

// PastLink leads to another task of the same name.
type PastLink struct {
	Task      TaskLink
	Status    Status
	Submitted string // RFC 3339
}
