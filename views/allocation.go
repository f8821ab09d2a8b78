package views

// AllocationForm is the page that makes a compute allocation. The whole form
// is the fragment with the id allocation-form; it is rendered again by the
// server on every change, with JavaScript and without.
//
// All inputs are text as typed, so that nothing is lost when it is wrong.
type AllocationForm struct {
	Chrome
	Action    string    // where the form is posted
	CancelURL string    // back to the policies page
	RequestID string    // hidden input request-id: makes a repeated save one save
	Submitted bool      // hidden input submitted: a save was tried, so that all that is wrong is told from then on
	Resumed   bool      // whether it comes back as it was typed, after signing in again
	Failure   string    // what stopped the save as a whole, such as the cluster being out of reach; empty for none
	Errors    []Message // summary on top, each linked to its field

	Team        TextField // input name "team"
	Namespace   string    // the namespace the typed team name makes; empty while there is no valid name
	DisplayName TextField // "display-name"
	Description TextField // "description"
	Weight      TextField // "weight", 0 to 100

	Rows          []AllocationFormRow
	CanAddRow     bool // false at 15 rows
	InstanceTypes []InstanceTypeOption

	Strategy      string    // "LendAndBorrow", "Lend" or "DontLend"; input name "strategy"
	StrategyError string    // set when something else was posted
	BorrowPercent TextField // "borrow-percent", 0 to 10000; only meaningful for LendAndBorrow
	BorrowEnabled bool      // whether the strategy borrows at all

	Preemption      string // "LowerPriority" or "Never"; input name "preemption"
	PreemptionError string
}

// TextField is one text input as typed.
type TextField struct {
	Value string // as typed
	Error string // a sentence; empty when the input is right
}

// AllocationFormRow is the quota in one instance type. Inputs are named
// row-N-type, row-N-instances, row-N-accelerators, row-N-vcpu, row-N-memory
// with N from 0. An empty input takes its default.
type AllocationFormRow struct {
	Index        int
	Type         TextField
	There        string // what the cluster has of it, such as "16 GPUs (H100) there · 12 given to others"; empty while the type is unknown
	Over         string // warning when more is given out than is there; empty otherwise
	Instances    AmountField
	Accelerators AmountField
	VCPU         AmountField
	Memory       AmountField // in GiB
	Borrow       string      // what may be borrowed, such as "Borrows up to 1 GPU, 24 vCPU, 256 GiB"; empty when nothing is known yet
	BorrowNone   string      // warning where a limit comes to 0, such as "Half of one network device is none: tasks cannot borrow one."; empty otherwise
	Error        string      // an error of the row as a whole
}

// AmountField is a number that has a default when left empty.
type AmountField struct {
	TextField
	Default string // what an empty input means, shown in the field and marked as default; empty when there is none yet
}

// InstanceTypeOption is a suggestion for an instance type.
type InstanceTypeOption struct {
	Name  string // such as ml.p5.48xlarge
	Label string // such as "8 H100 · 192 vCPU · 2048 GiB · 2 nodes here"
}
