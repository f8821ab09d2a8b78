package teams

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// TeamUsage is the quota, usage and queue of a team: the fragment with the id
// team-usage.
type TeamUsage struct {
	Trouble   string       // why there are no figures; empty otherwise
	Held      views.Status // of a queue that admits no tasks; no label otherwise
	Rows      []ShareFigures
	Overrides []string // sentences about windows and the budget
	Running   views.Count
	Waiting   views.Count
	Queue     []QueuedTask  // the head of its queue
	QueueNote string        // such as "the first 10 of 34"
	QueueURL  string        // list of all waiting tasks
	Inside    *InsideShares // nil without shares
	Idle      []IdleTask
	Classes   []views.ClassRow
	ClassNote string // time range of the averages
	ClassLeft string // a sentence about tasks that the averages omit; empty for none
}

// InsideShares are the shares of a team.
type InsideShares struct {
	Note    string
	Rows    []InsideRow
	Ordered bool // whether Kueue orders the tasks of some by usage
	Counted bool // whether Kueue counts usage
	Quota   bool // whether some have quota of their own
}

// InsideRow is one share, or the team's own queue.
type InsideRow struct {
	ID, Name, Queue  string
	Weight           string
	Usage            string // decayed, such as "10.4 GPUs"
	Part, Fair       string // of the usage of all shares, and by weight
	Running, Waiting string
	Quota            string // with its usage
}

// ShareFigures is the quota and usage of a team for one resource of one pool.
type ShareFigures struct {
	ID          string // stable HTML id of the row
	Pool        string
	SamePool    bool          // whether the row above has the same pool
	Resource    string        // such as "GPUs"
	Meter       ui.MeterProps // own and borrowed usage; the mark is the quota
	Quota       string
	Used        string
	Own         string
	Borrowed    string
	Lent        string
	Idle        string
	Utilization string
	Unplaced    string // such as "2 without a node"; empty for none
	Growth      string // such as "16 growth", of Used; empty for none
}

// IdleTask is one task whose accelerators are idle.
type IdleTask struct {
	ID           string // stable HTML id of the row
	Task         views.TaskLink
	Kind         string
	Accelerators string
	For          string // how long at least, such as "2 h 05 m"
	Peak         string // such as "1.2 %"
	StopURL      string // the page that stops it; empty without permission
}

// QueuedTask is one waiting task.
type QueuedTask struct {
	ID            string // stable HTML id of the row
	Position      string
	Task          views.TaskLink
	PriorityClass string
	Requests      string
	Waited        string
	Reason        string // why it waits
}

// TeamPast is the quota, usage and past tasks of a team.
type TeamPast struct {
	Picker      views.RangePicker
	Words       string // the range
	RangeChosen bool   // by the reader: the charts are open
	Charts      []views.Chart
	Trouble     string // why there are no charts; empty otherwise
	CSVURL      string
	Tasks       []views.PastRow
	// TasksTrouble is why no past tasks are listed; empty otherwise.
	TasksTrouble string
	Pager        views.Pager
	AllURL       string // list of all past tasks
}
