package allocations

import "kuota.dev/kuota/views"

// AllocationReview is the page that shows the effect of saving an allocation. It
// keeps the form in hidden inputs.
type AllocationReview struct {
	views.Chrome
	Action    string              // where the form is posted
	CancelURL string              // the page that opened the form
	UpLabel   string              // name of the page at CancelURL
	InPlace   bool                // whether the page is the response to a POST
	Save      string              // text of the save button
	Fields    []views.HiddenField // the typed values

	Asked             string // why a save has to be confirmed here; empty for a review that was asked for
	Preview           views.Preview
	Reason            views.ReasonField
	New               bool // whether saving creates the team
	Unchanged         bool // whether saving changes nothing
	Quota             []QuotaChange
	Settings          []views.ValueChange
	Capacity          []CapacityLine
	Stopped           Names    // running tasks that saving stops and requeues
	CannotRestart     []string // sentences about tasks that could not start again
	MoreCannotRestart int      // number of further such tasks
	NewPools          []NewPool
	Shares            []string // sentences about a change of the shares
	Calendar          []CalendarLine
	CalendarCut       bool // whether there are more lines
	Objects           []views.ObjectLine
	Incomplete        string // which checks failed and why; empty for a complete review
}

// CalendarLine is a time at which windows change something.
type CalendarLine struct {
	At    string   // RFC 3339
	Clock string   // the same in the time zone of the window; empty for one of another team
	Texts []string // what begins and ends
	Over  string   // what is allocated beyond the capacity from then on; empty for nothing
}

// Names is a number of tasks with the first names.
type Names struct {
	Count  int
	Listed []string // tasks with their kind
	More   int      // number of tasks that are not listed
}

// QuotaChange is the quota for one resource of one pool before and after. Changes
// are grouped by pool.
type QuotaChange struct {
	Pool          string
	SamePool      bool   // whether the row above has the same pool: the name is only read aloud
	Resource      string // such as "GPUs"
	Before, After string // "–" for none
	BorrowBefore  string // borrow limit, such as "without limit"
	BorrowAfter   string
	Changed       bool // whether the quota changes
	BorrowChanged bool
}

// CapacityLine compares the quota of all teams with the capacity of a pool, for
// one resource.
type CapacityLine struct {
	Pool, Resource          string
	SamePool                bool
	Physical, Before, After string
	Over                    string // quota beyond the capacity; empty if it fits
	Far                     string // the multiple of the capacity; empty for a small excess
	OverBefore              bool   // whether the quota exceeds the capacity now
}

func (p AllocationReview) stops() string {
	return views.Plural(p.Stopped.Count, "running task will be stopped and requeued", "running tasks will be stopped and requeued")
}
