package views

// DashboardPage is where the cluster stands, and was. All below its filters is
// the fragment with the id dashboard.
type DashboardPage struct {
	Chrome
	Loops      *LoopNotice // preemption loops that go on; nil for none
	Controls   Controls
	Stats      []Stat
	Pools      PoolTable
	UsageChart Chart
	Hardware   HardwareSection
	Teams      TeamTable
	Bars       BarList
	Classes    []ClassRow
	// ClassNote says of which time the figures of classes are, and ClassLeft in a
	// sentence what averages leave out; empty for nothing.
	ClassNote, ClassLeft, ClassCSVURL string
}

// Controls choose what a page of figures is about.
type Controls struct {
	Label    string // of the form, read aloud
	Action   string
	Fields   []HiddenField // of the address, that are kept
	TextName string        // of the search; empty for a page without
	Text     string        // searched for
	Filters  []Filter
	ClearURL string // the page without its filters; empty when it has none
	Picker   *RangePicker
}

// Stat is one figure that is read at a glance.
type Stat struct {
	ID    string // stable HTML id
	Label string
	Value string
	Unit  string // behind the value; empty for none
	Note  string // empty for nothing
	Bad   bool   // something to look at
}

// PoolTable is what each pool has, and what is done with it.
type PoolTable struct {
	Note    string
	Lines   []PoolUse
	More    string // a sentence on pools that are not shown; empty for all
	MoreURL string
	CSVURL  string
}

// PoolUse is one resource of one pool.
type PoolUse struct {
	ID, Name, URL string
	Sub           string // such as "H100 · 2 instances"
	Trouble       string // such as "1 pending recovery"; empty for none
	Unit          string
	Label         string // the bar in words
	Max           float64
	Parts         []BarPart
	Mark          float64
	// Of these the five after Physical add up to it.
	Physical, Own, Borrowed, Outside, Unhealthy, Idle, Quota, Unplaced, Largest string
	Over                                                                        string // such as "+2 over"; empty for none
}

// TeamTable is what teams were given and what they hold.
type TeamTable struct {
	ID       string
	Note     string // such as "GPUs in all pools"
	Heads    []ColumnHead
	Rows     []TeamLine
	Other    *TeamLine // all that is not in Rows; nil for nothing
	Sum      TeamLine  // of Rows and Other
	Pager    Pager
	CSVURL   string
	AllURL   string // the whole table; empty where this is it
	ClearURL string // the table without its search; empty when it has none
}

// TeamLine is one team.
type TeamLine struct {
	ID, Name, URL                   string
	Sub                             string // empty for nothing
	Allocated, Used, Borrowed, Lent string // without a unit
	Utilization                     string // such as "53.33 %"; "–" without quota
	Borrowing                       bool   // it holds more than it was given
	Running, Waiting                Count
}

// TeamsPage is the list of teams. The table is the fragment with the id teams.
type TeamsPage struct {
	Chrome
	Controls Controls
	Teams    TeamTable
}
