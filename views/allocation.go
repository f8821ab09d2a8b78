package views

// AllocationForm is the page that makes or changes a compute allocation. The
// whole form is the fragment with the id allocation-form; it is rendered again
// by the server on every change, with JavaScript and without.
//
// All inputs are text as typed, so that nothing is lost when it is wrong.
type AllocationForm struct {
	Chrome
	TypedForm
	Action    string    // where the form is posted
	CancelURL string    // back to where it was opened
	UpLabel   string    // the page above, which CancelURL leads to
	RequestID string    // hidden input request-id: makes a repeated save one save
	Imported  Imported  // set when an import filled it in
	Submitted bool      // hidden input submitted: a save was tried, so that all that is wrong is told from then on
	Restored  Restored  // the older version that it opens with, if any
	Reason    string    // hidden input reason, which the review asks for
	Resumed   bool      // whether it comes back as it was typed, after signing in again
	Failure   string    // what stopped the save as a whole, such as the cluster being out of reach; empty for none
	Errors    []Message // summary on top, each linked to its field

	Edit       bool   // whether it changes an allocation: its team and namespace are fixed
	Version    string // hidden input version: the resourceVersion that was read
	Generation string // hidden input generation: the spec that was read

	Team            TextField // input name "team"
	DisplayName     TextField // "display-name"
	Description     TextField // "description"
	Activation      string    // "Active", "Hold" or "Drain"; when it is changed, or an import names it
	ActivationError string

	Namespace    TextField // "namespace": an existing one; empty for the team's own
	NewNamespace string    // the namespace the typed team name makes; empty while there is no valid name
	Weight       TextField // "weight", 0 to 100
	WeightNote   string    // what a weight of 0 means beside others; empty for nothing
	Members      []MemberField
	CanAddMember bool
	MembersError string

	Rows          []AllocationFormRow
	CanAddRow     bool // false at 15 rows
	InstanceTypes []InstanceTypeOption
	NewPools      []NewPool // pools to be made with it

	Strategy      string    // "LendAndBorrow", "Lend" or "DontLend"; input name "strategy"
	StrategyError string    // set when something else was posted
	BorrowPercent TextField // "borrow-percent", 0 to 10000; only meaningful for LendAndBorrow
	Unlimited     bool      // "unlimited": borrows all that stands idle
	BorrowEnabled bool      // whether the strategy borrows at all
	Limits        []AllocationFormRow
	CanAddLimit   bool

	Preemption      string // "LowerPriority" or "Never"; input name "preemption"
	PreemptionError string
	PreemptionNote  string // why the choice has no effect now; empty where it has

	Ceiling      bool // "ceiling"
	CeilingError string
	DefaultQueue bool // "default-queue"
}

// TextField is one text input as typed.
type TextField struct {
	Value string // as typed
	Error string // a sentence; empty when the input is right
}

// MemberField is one member. Inputs are named member-N-kind and member-N-name.
type MemberField struct {
	Index int
	Kind  string // "User" or "Group"
	Name  TextField
}

// AllocationFormRow is the quota in one instance type or pool, or what may be
// borrowed of it. Inputs are named row-N-type, row-N-instances,
// row-N-accelerators, row-N-vcpu, row-N-memory, row-N-profile and row-N-count
// with N from 0, and those of a limit begin with limit-N. An empty input takes
// its default.
type AllocationFormRow struct {
	Limit           bool // whether it is a borrow limit
	Index           int
	Type            TextField
	Capacity        string // what the cluster has of it, such as "16 GPUs (H100) there · 12 given to others"; empty while the type is unknown
	Over            string // warning when more is allocated than the pool has; empty otherwise
	FarOver         bool   // whether that is several times as much
	Instances       AmountField
	Accelerators    AmountField
	AcceleratorUnit string // what its accelerators are called, such as "Neuron devices"; empty while unknown
	VCPU            AmountField
	Memory          AmountField // in GiB
	Exact           string      // hidden input: the amount of memory to the byte, where the text is rounded
	Partitions      []string    // profiles that its GPUs can be cut into
	Profile         TextField   // one of them, or none
	Count           TextField   // how many such parts
	Borrow          string      // what may be borrowed, such as "Borrows up to 1 GPU, 24 vCPU, 256 GiB"; empty when nothing is known yet
	BorrowNone      string      // warning where a limit comes to 0, such as "Half of one network device is none: tasks cannot borrow one."; empty otherwise
	Suggestion      NewPool     // the pool that what was typed could become; without a name there is none
	Error           string      // an error of the row as a whole
}

// AmountField is a number that has a default when left empty.
type AmountField struct {
	TextField
	Default string // what an empty input means, shown in the field and marked as default; empty when there is none yet
}

// InstanceTypeOption is a suggestion for an instance type or pool.
type InstanceTypeOption struct {
	Name  string // such as ml.p5.48xlarge
	Label string // such as "8 H100 · 192 vCPU · 2,048 GiB · 2 nodes here"
}

// NewPool is a pool that is made together with the allocation. The form keeps
// it in hidden inputs named new-pool-N-name, -kind and -value.
type NewPool struct {
	Name  string // such as h100
	Kind  string // "accelerator" or "instanceFamily"
	Value string // such as H100
	Text  string // what it has now, such as "2 nodes"
}
