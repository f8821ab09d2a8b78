package views

// PolicyCard is the cluster policy on the policies page: the fragment with the id
// cluster-policy.
type PolicyCard struct {
	Exists   bool // false: the card describes the behavior without a policy
	MayEdit  bool
	EditURL  string
	Status   Status          // of the policy as a whole
	Progress *PolicyProgress // nil if no re-ranking runs
	Parts    []PolicyPart    // in display order
	Managed  string          // the tool that manages it, and where to change it; empty for none
	YAML     string          // the policy as YAML; YAMLURL is the same as a file
	YAMLURL  string
	Patch    string // manual changes of Kueue; empty if Kueue matches the policy
	// PatchReason is why Kuota does not make the changes of Patch.
	PatchReason string
	TryAgainURL string // that makes Kuota try again; empty where it cannot
	User        string
	History     History // the last versions
}

// PolicyProgress is the progress of re-ranking tasks.
type PolicyProgress struct {
	Text        string
	Done, Tasks int // Tasks 0: not counted yet
}

// PolicyPart is one part of the policy and whether the cluster matches it.
type PolicyPart struct {
	ID, Label string
	Value     string      // such as "By priority class"
	Text      string      // its effect
	Classes   []ClassLine // of task prioritization, highest first
	Pools     []PoolLine  // in matching order
	Status    Status      // no label: no status
}

// ClassLine is one priority class.
type ClassLine struct {
	Name, Weight, Description string
	Object                    string // value of the label of tasks
	Limits                    string // time limits of its tasks; empty for none
}

// PoolLine is one pool with its number of matching nodes.
type PoolLine struct{ Name, Match, Nodes string }

// PolicyForm is the page that edits the cluster policy. The form is the fragment
// with the id policy-form. Inputs are text as typed.
type PolicyForm struct {
	Chrome
	TypedForm
	Action     string // where the form is posted
	CancelURL  string
	New        bool   // whether there is no policy yet
	Version    string // hidden input resource-version
	Generation string // hidden input generation
	Imported   Imported
	Submitted  bool   // hidden input submitted: after the first review, all errors are shown
	Resumed    bool   // whether it has the typed values after signing in again
	Failure    string // why it failed as a whole; empty for none
	Errors     []Message
	Restored   Restored // set for a form with the values of an older version
	Reason     string   // hidden input reason, which the review requires
	Drop       []string // hidden inputs drop: classes confirmed for deletion in a review

	Prioritization Choice // input "prioritization": FirstComeFirstServe or TaskRanking
	Classes        []PolicyClassRow
	CanAddClass    bool
	ClassesError   string
	Classless      string // number of tasks without a priority class, such as "3 tasks"; empty for none

	Idle  Choice // "idle": FairShare or FirstComeFirstServe
	Share bool   // "share-unallocated"

	Gang                                  bool      // "gang"
	Timeout, Recovery                     TextField // "gang-timeout", "gang-recovery"
	Block                                 bool      // "gang-block"
	RequeueOrder                          Choice    // "requeue-order": Eviction or Creation
	RequeueLimit, RequeueBase, RequeueMax TextField // "requeue-limit", "requeue-base", "requeue-most"

	Usage                            bool      // "usage"
	HalfLife, Interval, UsageWeights TextField // "usage-half-life", "usage-interval", "usage-weights"

	PreemptionLoops Choice // "preemption-loops": Break or Warn

	Enforcement Choice // "enforcement": RequireQueue or None

	Pools      []PolicyPoolRow
	CanAddPool bool
	PoolsError string
	Currency   TextField
	Prices     TextField // one price a line
	// AlertRules and AlertReceivers have one a line.
	AlertRules, AlertReceivers TextField
	Suggestions                PoolSuggestions
}

// Choice is one of several values.
type Choice struct {
	Value string
	Error string // set for an invalid value
}

// PolicyClassRow is one priority class as typed. Inputs are named
// class-N-name, class-N-weight, class-N-limit, class-N-longest and
// class-N-description, with N from 0.
type PolicyClassRow struct {
	Name, Weight, Description TextField
	Limit, Longest            TextField // default and maximum of the time limit
	Tasks                     string    // number of tasks that use it; empty for none
	Error                     string
}

// PolicyPoolRow is one pool as typed. Inputs are named pool-N-name,
// pool-N-match and pool-N-value, with N from 0.
type PolicyPoolRow struct {
	Name  TextField
	Match string // "accelerator", "family", "types" or "labels"
	Value TextField
	Nodes string // nodes that match now, such as "2 nodes now"; empty while unknown
	Error string
}

// PoolSuggestions are values of the nodes of this cluster.
type PoolSuggestions struct{ Accelerators, Families, Types []string }

// PolicyReview is the page that shows the effect of saving the policy.
type PolicyReview struct {
	Chrome
	InPlace    bool // whether the page is the response to a POST
	Action     string
	CancelURL  string
	Fields     []HiddenField // the form as typed
	Preview    Preview
	Reason     ReasonField
	Unchanged  bool   // whether saving changes nothing
	NoEffect   bool   // whether only settings without effect change, such as the order of rows
	Incomplete string // which checks failed; empty for a complete review
	Settings   []ValueChange
	Classes    []ReviewClass
	Pools      []ValueChange
	Rerank     string // effect of re-ranking tasks; empty for none
	Gang       string // timeout if gang scheduling is turned on; empty otherwise
	Borrowing  string // tasks that a new strategy for idle compute can preempt; empty for none
	Restart    bool
	Patch      string
	Objects    []ObjectLine
}

// ReviewClass is one priority class before and after.
type ReviewClass struct {
	Name, Before, After string
	Tasks               string // such as "12 tasks"; empty for none
	Drop                string // question whether to delete a class that tasks use; empty for none
	Dropped             bool   // whether that was confirmed
}
