package views

// AllocationReview is the page that shows what saving would do, before it is
// done. It keeps the whole form in hidden inputs.
type AllocationReview struct {
	Chrome
	Action    string        // where the form is posted
	CancelURL string        // back to where the form was opened
	UpLabel   string        // the page above
	InPlace   bool          // whether the page answers a POST
	Save      string        // the text of the button that saves
	Fields    []HiddenField // all that was typed

	Reason            ReasonField
	New               bool // whether there is no team yet: nothing is so now
	Unchanged         bool // whether saving would change nothing
	Quota             []QuotaChange
	Settings          []ValueChange
	Capacity          []CapacityLine
	Stopped           Names // tasks that saving stops
	Over              []OverLine
	Reclaims          []OverLine // what the team could preempt of others
	CannotRestart     []string   // sentences on tasks that could not start again
	MoreCannotRestart int        // how many such tasks more
	NewPools          []NewPool
	Objects           []ObjectLine
	Incomplete        string // what could not be looked at and why; empty when the review is whole
}

// Names are many names, of which some are told.
type Names struct {
	Count  int
	Listed []string // tasks with their kind
	More   int      // how many more there are
}

// QuotaChange is one resource of one pool before and after. The figures of a
// pool follow one another.
type QuotaChange struct {
	Pool          string
	SamePool      bool   // whether the line above is of the same pool: its name is read aloud only
	Resource      string // such as "GPUs"
	Before, After string // "–" for none
	BorrowBefore  string // what may be borrowed, such as "without limit"
	BorrowAfter   string
	Changed       bool // whether the quota changes
	BorrowChanged bool
}

// ValueChange is one value before and after; "–" for none.
type ValueChange struct{ Name, Before, After string }

// CapacityLine is how much of one resource of a pool is given out to all teams.
type CapacityLine struct {
	Pool, Resource          string
	SamePool                bool
	Physical, Before, After string
	Over                    string // by how much more is given out than is there; empty where it fits
	Far                     string // how many times as much that is; empty where it is only slightly more
	OverBefore              bool   // whether it was over capacity before
}

// OverLine is what the team's tasks hold beyond its quota afterwards.
type OverLine struct {
	Text  string   // such as "ml.p5.48xlarge: uses 6, quota 4 GPUs"
	By    string   // joins it to the tasks, such as "from"
	Tasks []string // names with their kind, those that would be taken back first, first
	More  int      // how many tasks more
}

func (p AllocationReview) stops() string {
	return count(p.Stopped.Count, "running task will be stopped and requeued", "running tasks will be stopped and requeued")
}

// ObjectLine is one object of Kubernetes or Kueue that changes.
type ObjectLine struct {
	ID      string // unique on the page
	Tone    string // of the tag
	Action  string // "made", "changed" or "removed"
	Created bool   // whether there is no such object yet
	Name    string // kind and name
	Fields  []ValueChange
}
