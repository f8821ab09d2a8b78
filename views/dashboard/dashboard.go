package dashboard

import "kuota.dev/kuota/views"

// DashboardPage shows capacity, usage and teams. All below its filters is the
// fragment with the id dashboard.
type DashboardPage struct {
	views.Chrome
	Mine       *Mine             // for members of teams; nil for readers of the whole cluster
	Loops      *views.LoopNotice // current preemption loops; nil for none
	Controls   views.Controls
	Stats      []views.Stat
	Pools      PoolTable
	UsageChart views.Chart
	Hardware   HardwareSection
	Teams      views.TeamTable
	Classes    []views.ClassRow
	// ClassNote is the time range of the class figures; ClassLeft is a sentence about
	// tasks that the averages omit, empty for none.
	ClassNote, ClassLeft, ClassCSVURL string
	ExportURL                         string // all tables in one file
	Trends                            Trends
	RangeChosen                       bool // by the reader: the charts are open
}

// Mine are the active tasks of the teams of a member.
type Mine struct {
	Note      string // such as "2 waiting, 3 running"
	Rows      []MyTask
	More      string // a sentence about tasks that are not shown; empty for none
	AllURL    string
	SubmitURL string
}

// MyTask is one task.
type MyTask struct {
	ID, Name, URL, Team, By string
	Status                  views.Status
	Reason                  string
}

// Trends are charts of what happened to tasks over a range, with a line for each
// priority class or team.
type Trends struct {
	Note   string            // what they count, and the range
	Links  []views.RangeLink // to the same charts with other lines
	Empty  string            // shown instead of charts
	More   string            // a sentence about lines that are not shown; empty for none
	Charts []views.Chart
}

// PoolTable is the capacity and usage of each pool.
type PoolTable struct {
	Note    string
	Lines   []PoolUse
	More    string // a sentence about pools that are not shown; empty for none
	MoreURL string
	CSVURL  string
}

// PoolUse is one resource of one pool.
type PoolUse struct {
	ID, Name, URL string
	Sub           string // such as "H100 · 2 instances"
	Trouble       string // such as "1 pending recovery"; empty for none
	Unit          string
	views.PoolNumbers
	Unplaced         string
	UnplacedBorrowed string // the borrowed part of Unplaced, such as "2 borrowed"; empty for none
}
