package views

// Tab links to a part of a list.
type Tab struct {
	Label   string
	Count   string // number of entries; empty for none
	URL     string
	Current bool
}

// Filter is a select that filters a list.
type Filter struct {
	ID      string // also the parameter in the address
	Label   string
	Options []Option
	Wrong   string // a sentence about a chosen value that is none of the choices
}

// Option is one value of a select.
type Option struct {
	Value    string
	Label    string
	Selected bool
}

// ManyForm acts on the selected rows of a list, whose check boxes belong to it. It is shown
// while one is checked.
type ManyForm struct {
	Action  string
	Label   string // such as "Selected tasks"
	All     string // label of the check box that selects the whole list
	Fields  []HiddenField
	Buttons []Option // values of the input "do"
}

// RangeLink links to the same page with another time range.
type RangeLink struct {
	Label   string // such as "12 h"
	Title   string // accessible name
	URL     string
	Current bool
}

// Pager links to the pages of a list. The zero value is a list with one page.
type Pager struct {
	Text        string // such as "101–200 of 5,000"
	PreviousURL string // empty on the first page
	NextURL     string // empty on the last page
}

// ClassRow is the figures of one priority class.
type ClassRow struct {
	ID                                               string // stable HTML id of the row
	Name                                             string
	Running, Pending, Preempted                      Count
	AverageRun, AverageWait, LongestRun, LongestWait string // "–" for none
}

// Count is a number, with the address of the list; empty for none.
type Count struct {
	Text string
	URL  string
}
