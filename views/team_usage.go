package views

// TeamUsage is what a team has, holds and waits for now. It is the fragment with
// the id team-usage.
type TeamUsage struct {
	Trouble   string // why there are no figures; empty where there are
	Rows      []ShareFigures
	Running   Count
	Waiting   Count
	Queue     []QueuedTask // the head of its queue
	QueueNote string       // such as "the first 10 of 34"
	QueueURL  string       // the list of all that wait
	Classes   []ClassRow
	ClassNote string // from when averages are
	ClassLeft string // a sentence on what averages leave out; empty for nothing
}

// ShareFigures is what a team has of one resource of one pool.
type ShareFigures struct {
	ID          string // stable HTML id of the row
	Pool        string
	SamePool    bool   // the pool is that of the row above
	Resource    string // such as "GPUs"
	Bar         BarRow // own and borrowed; the mark is its quota
	Max         float64
	Quota       string
	Used        string
	Own         string
	Borrowed    string
	Lent        string
	Idle        string
	Utilization string
	Unplaced    string // such as "2 without a node"; empty for none
}

// QueuedTask is one of the tasks that wait.
type QueuedTask struct {
	ID            string // stable HTML id of the row
	Position      string
	Task          TaskLink
	PriorityClass string
	Requests      string
	Waited        string
	Reason        string // why it waits
}

// TeamPast is what became of a team's quota and tasks.
type TeamPast struct {
	Picker  RangePicker
	Charts  []Chart
	Trouble string // why there are no charts; empty where there are
	CSVURL  string
	Tasks   []PastRow
	// TasksTrouble is why no past tasks are listed; empty where they are.
	TasksTrouble string
	Pager        Pager
	AllURL       string // the list of all
}
