package tasks

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// TasksPage is the live list of tasks, with figures of each priority class. Both tables are the fragment with the id tasks.
type TasksPage struct {
	views.Chrome
	Notice    string            // confirmation of an action; empty for none
	OneTeam   string            // whose tasks are listed; empty for several
	Stats     []views.Stat      // numbers of waiting and running tasks
	Summary   string            // such as "8 running, 4 pending"
	Tabs      []views.Tab       // active and finished tasks
	Tab       string            // requested tab, as in the address; empty for the default
	Loops     *views.LoopNotice // nil for none
	Classes   []views.ClassRow
	ClassNote string // time range of the averages
	ClassLeft string // a sentence about tasks that the averages omit; empty for none
	Ranges    []views.RangeLink
	Range     string // requested time range, as in the address; empty for the default
	Action    string // address of the filter form
	Text      string // search text
	Filters   []views.Filter
	ClearURL  string // the list without filters; empty if none is set
	Sort      string // requested order, as in the address; empty for the default
	Order     string
	Heads     []ui.Head // of the visible columns
	Columns   []ColumnChoice
	Tasks     []TaskRow
	Pager     views.Pager
	CSVURL    string
	PastURL   string // list of past tasks; empty without history
	SubmitURL string // form that submits a task, if the list shows one team; else empty
	// SubmitTeams are the same for readers of some teams, to choose from; empty for one or many.
	SubmitTeams []SubmitTeam
	Many        *views.ManyForm // nil for a console that changes nothing
}

// SubmitTeam is a team with the form that submits a task to it.
type SubmitTeam struct{ Name, URL string }

// ColumnChoice is a column that can be hidden.
type ColumnChoice struct {
	ID    string
	Label string
	Shown bool
}

// TaskRow is one task. Cells are those after its name and its status.
type TaskRow struct {
	ID     string // stable HTML id of the row
	Select string // value of its check box; empty for none
	Name   string
	URL    string // its page
	Size   string // such as "8 of 16 pods"; empty if it has all its pods
	Status views.Status
	Idle   string // how long its accelerators are idle; empty if they are not
	Reason string // why it does not run, as a sentence; empty if it runs
	Cells  []TaskCell
}

// TaskCell is one cell of a TaskRow. A card on a narrow screen hides cells without a value.
type TaskCell struct {
	Class string // "n" for a number, "wraps" or "pool"; empty for none
	Text  string // "–" for none
	Sub   string // below the text; empty for none
	At    string // RFC 3339, below the text; empty for none
}

func (c TaskCell) empty() bool { return c.Text == "–" && c.Sub == "" && c.At == "" }
