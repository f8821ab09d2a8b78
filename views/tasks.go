package views

// TasksPage is the live list of tasks, with what there is of each priority
// class. Both tables are the fragment with the id tasks.
type TasksPage struct {
	Chrome
	Notice    string      // one sentence on what was just done; empty for nothing
	Stats     []Stat      // how many tasks wait and run
	Summary   string      // such as "8 running, 4 pending"
	Tabs      []Tab       // active and finished tasks
	Tab       string      // the tab that was asked for, as the address has it; empty for the usual one
	Loops     *LoopNotice // nil for none
	Classes   []ClassRow
	ClassNote string // from when averages are
	ClassLeft string // a sentence on what averages leave out; empty for nothing
	Ranges    []RangeLink
	Range     string // the time that was asked for, as the address has it; empty for the usual one
	Action    string // where the filters are sent
	Text      string // searched for
	Filters   []Filter
	ClearURL  string // the list without its filters; empty when it has none
	Sort      string // the order that was asked for, as the address has it; empty for the usual one
	Order     string
	Heads     []ColumnHead // of the columns that are shown
	Columns   []ColumnChoice
	Hidden    map[string]bool // columns, by their ids
	Tasks     []TaskRow
	Pager     Pager
	CSVURL    string
	PastURL   string // the list of those that ended; empty without history
	SubmitURL string // where a task is submitted, for who looks at one team; else empty
}

// Tab leads to a part of a list.
type Tab struct {
	Label   string
	Count   string // how many it has
	URL     string
	Current bool
}

// Filter is a choice of what a list has.
type Filter struct {
	ID      string // also its name in the address
	Label   string
	Options []Option
}

// Option is one value of a choice.
type Option struct {
	Value    string
	Label    string
	Selected bool
}

// ColumnHead is the head of a column that a list can be sorted by.
type ColumnHead struct {
	ID     string // in addresses
	Label  string
	Unit   string
	Number bool   // right-aligned
	URL    string // sorts by it; empty for a column that cannot be sorted by
	Sorted string // "ascending" or "descending"; empty when it is sorted by another
}

// ColumnChoice is a column that can be hidden.
type ColumnChoice struct {
	ID    string
	Label string
	Shown bool
}

// RangeLink leads to the same list with figures over another time.
type RangeLink struct {
	Label   string // such as "12 h"
	Title   string // what it means, read aloud
	URL     string
	Current bool
}

// Pager leads through the pages of a list. Its zero value is a list of one page.
type Pager struct {
	Text        string // such as "101–200 of 5,000"
	PreviousURL string // empty on the first page
	NextURL     string // empty on the last page
}

// ClassRow is what there is of one priority class.
type ClassRow struct {
	ID                                               string // stable HTML id of the row
	Name                                             string
	Running, Pending, Preempted                      Count
	AverageRun, AverageWait, LongestRun, LongestWait string // "–" for none
}

// Count is how many there are, with the address of their list; empty for none.
type Count struct {
	Text string
	URL  string
}

// TaskRow is one task.
type TaskRow struct {
	ID            string // stable HTML id of the row
	Name          string
	Kind          string // such as "Job"
	URL           string // its page
	Size          string // such as "8 of 16 pods"; empty when it has all that it wants
	Status        Status
	Reason        string // why it does not run, in one sentence; empty when it runs
	Team          string // "–" when the namespace belongs to none
	Namespace     string // shown for a task of no team
	PriorityClass string // priority class; "–" for none
	Position      string // in its queue, such as "3rd"; "–" while it does not wait
	Accelerators  string // such as "2 GPUs"; "–" for none
	VCPU          string
	Memory        string // in GiB, without the unit
	Pool          string // where it was admitted; "–" while it waits
	Submitted     string // RFC 3339, shown in the viewer's zone
	SubmittedAgo  string // such as "2 h 05 m", as of rendering
	Waited        string // such as "25 m"; "–" for not yet
	Ran           string
	Preemptions   string // "–" for none
}
