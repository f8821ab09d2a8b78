package allocations

import "kuota.dev/kuota/views"

// AllocationForm is the page that creates or edits a compute allocation. The form
// is the fragment with the id allocation-form: the server renders it again on
// every change, with and without JavaScript.
//
// Inputs are text as typed, so that invalid input is not lost.
type AllocationForm struct {
	views.Chrome
	views.TypedForm
	Action    string          // where the form is posted
	CancelURL string          // the page that opened it
	UpLabel   string          // name of the page at CancelURL
	RequestID string          // hidden input request-id: identifies repeated saves
	Imported  views.Imported  // set for a form with imported values
	Submitted bool            // hidden input submitted: after the first save, all errors are shown
	Restored  views.Restored  // set for a form with the values of an older version
	Reason    string          // hidden input reason, which the review requires
	Resumed   bool            // whether it has the typed values after signing in again
	Failure   string          // why the save failed as a whole, such as an unreachable cluster; empty for none
	Errors    []views.Message // summary on top, each linked to its field

	Asked  string // hidden input asked, which keeps what Merged and Effect.Changed say
	Merged string // what another user saved meanwhile, which the form has too; empty for nothing
	Effect Effect
	Save   string // text of the button that saves

	OfDepartment   bool              // whether it is the form of a department, which is a cohort of teams
	Department     views.SelectField // "department": that of the team, or the parent; without options for none to choose
	DepartmentNote string            // what the department has left; empty for nothing

	Edit       bool   // whether it edits an existing allocation, whose team and namespace are fixed
	Version    string // hidden input version: the resourceVersion that was read
	Generation string // hidden input generation: the spec that was read

	Team views.TextField // input name "team"
	// Fields are inputs by their name: "display-name"; "description"; "activation", which is "Active",
	// "Hold" or "Drain", when it is changed, or an import names it; "namespace", an existing one, empty for the team's
	// own; "weight", 0 to 100; "preemption", which is "LowerPriority" or "Never".
	Fields  map[string]views.TextField
	Options []OptionField

	NewNamespace string // namespace that is created for the typed team name; empty without a valid name
	WeightNote   string // warning about a weight of 0; empty for none
	Members      []MemberField
	CanAddMember bool
	MembersError string
	MembersNote  string   // warning about a team without members; empty for none
	KnownMembers []string // names of people and groups that were seen before

	Rows          []AllocationFormRow // of pools that exist first, unless the team has quota
	CanAddRow     bool                // false at 15 rows with quota
	InstanceTypes []InstanceTypeOption
	NewPools      []NewPool // pools that saving creates

	Strategy      string          // "LendAndBorrow", "Lend" or "DontLend"; input name "strategy"
	StrategyError string          // set for an invalid value
	BorrowPercent views.TextField // "borrow-percent", 0 to 10000; only meaningful for LendAndBorrow
	Unlimited     bool            // "unlimited": no borrow limit
	BorrowEnabled bool            // whether the strategy allows borrowing
	Limits        []AllocationFormRow
	CanAddLimit   bool

	More     string // what is set under More settings; empty for nothing
	MoreOpen bool

	DefaultClass   views.SelectField // the priority class of tasks that name none
	PreemptionNote string            // why the choice of preemption has no effect now; empty if it has

	Shares      []TeamShareRow
	CanAddShare bool
	SharesError string
	NoShares    bool     // whether the ClusterQueue is an adopted one, which cannot have shares
	UsageCounts bool     // whether the cluster policy counts the usage of shares
	Batch       string   // "batch": a scheduling policy of AWS Batch, as typed
	BatchNotes  []string // what of it is not imported

	Windows      []WindowRow
	CanAddWindow bool
	WindowsError string
	Budget       BudgetFields
}

// Effect is what saving does, beside the form.
type Effect struct {
	Text      string // instead of an effect: what is missing; empty for nothing
	Verify    bool   // whether the script asks for the simulation
	Preview   views.PreviewVariant
	Note      string // a sentence above it; empty for none
	Shown     string // hidden input: identifies what is shown
	Unchanged bool   // whether saving changes nothing
	Changed   bool   // whether nothing was saved, because the effect has changed
}

// OptionField is a checkbox with a hint.
type OptionField struct {
	ID, Label, Hint string
	Checked         bool
	Error           string // a sentence; empty for none
}

// MemberField is one member. Inputs are named member-N-kind and member-N-name.
type MemberField struct {
	Index int
	Kind  string // "User" or "Group"
	Admin bool   // whether the role in the department is Admin
	Name  views.TextField
	Note  string // warning about a name that was not seen before; empty for none
}

// TeamShareRow is one share as typed. Inputs are named share-N-name, share-N-weight and
// share-N-members, with N from 0.
type TeamShareRow struct {
	Name, Weight, Members, Kinds, Quota, Percent views.TextField
	Class, Order                                 views.SelectField
	Error                                        string // about the row as a whole
}

// ownQueue reports whether the share has, or was to get, quota of its own or defaults.
func (r TeamShareRow) ownQueue() bool {
	return r.Kinds.Value+r.Kinds.Error+r.Class.Selected()+r.Class.Error+r.Quota.Value+r.Quota.Error+r.Percent.Value+r.Percent.Error+r.Order.Error != ""
}

// WindowRow is one window as typed. Inputs are named window-N-name and so on, with N from 0.
type WindowRow struct {
	Name, Days, From, To, Zone, Quota, Percent, Notice views.TextField
	Sharing, Activation                                views.SelectField
	Error                                              string // about the row as a whole
}

// BudgetFields are the inputs of the budget; an empty amount is none.
type BudgetFields struct {
	Amount, Zone views.TextField // "budget-amount" and "budget-zone"
	Unit, Period views.SelectField
	Steps        []BudgetStepField
}

// BudgetStepField is the percentage of one action.
type BudgetStepField struct {
	ID, Label string
	Percent   views.TextField
}

// AllocationFormRow is the quota in one instance type or pool, or the borrow limit. Inputs are named row-N-type, row-N-instances,
// row-N-accelerators, row-N-vcpu, row-N-memory, row-N-profile and row-N-count
// with N from 0, and those of a limit begin with limit-N. An empty input
// means its default.
type AllocationFormRow struct {
	Limit           bool // whether it is a borrow limit
	Offered         bool // whether it is the row of a pool that exists, whose type is not typed
	Index           int
	Title           string // of an offered row, such as "H100"
	Type            views.TextField
	Capacity        string // capacity of the pool and the quota of other teams; empty for an unknown type
	Over            string // warning if the quota of all teams exceeds the capacity; empty otherwise
	FarOver         bool   // whether the quota exceeds it several times
	Instances       views.AmountField
	Accelerators    views.AmountField
	AcceleratorUnit string // such as "Neuron devices"; empty while unknown
	VCPU            views.AmountField
	Memory          views.AmountField // in GiB
	Rest            string            // vCPU and memory as they are, typed or not; empty while unknown
	NoAccelerators  bool              // whether the pool has none
	Others          []ResourceField   // row-N-other-NAME
	OthersError     string            // an error of one of them
	Exact           string            // hidden input: exact memory in bytes, if the text is rounded
	Partitions      []string          // MIG profiles of its GPUs
	Profile         views.TextField   // one of them, or none
	Count           views.TextField   // number of partitions
	Borrow          string            // borrow limit, such as "Borrows up to 1 GPU, 24 vCPU, 256 GiB"; empty while unknown
	BorrowNone      string            // warning if a borrow limit rounds to 0; empty otherwise
	Suggestion      NewPool           // a pool that could be created for the typed type; no name: none
	Error           string            // an error of the row as a whole
}

// ResourceField is an amount of a resource that has no input of its own.
type ResourceField struct{ Name, Label, Unit, Amount string }

// InstanceTypeOption is a suggestion for an instance type or pool.
type InstanceTypeOption struct {
	Name  string // such as ml.p5.48xlarge
	Label string // such as "8 H100 · 192 vCPU · 2,048 GiB · 2 nodes here"
}

// NewPool is a pool that is created with the allocation, from hidden inputs named new-pool-N-name, -kind and -value.
type NewPool struct {
	Name  string // such as h100
	Kind  string // "accelerator" or "instanceFamily"
	Value string // such as H100
	Text  string // its nodes, such as "2 nodes"
}
