package policy

import "kuota.dev/kuota/views"

// PolicyForm is the page that edits the cluster policy. The form is the fragment
// with the id policy-form. Inputs are text as typed.
type PolicyForm struct {
	views.Chrome
	views.TypedForm
	Action     string // where the form is posted
	CancelURL  string
	New        bool   // whether there is no policy yet
	Version    string // hidden input resource-version
	Generation string // hidden input generation
	Imported   views.Imported
	Submitted  bool   // hidden input submitted: after the first review, all errors are shown
	Resumed    bool   // whether it has the typed values after signing in again
	Failure    string // why it failed as a whole; empty for none
	Errors     []views.Message
	Restored   views.Restored // set for a form with the values of an older version
	Reason     string         // hidden input reason, which the review requires
	Drop       []string       // hidden inputs drop: classes confirmed for deletion in a review

	Prioritization Choice // input "prioritization": FirstComeFirstServe or TaskRanking
	Classes        []PolicyClassRow
	CanAddClass    bool
	ClassesError   string
	Classless      string // number of tasks without a priority class, such as "3 tasks"; empty for none

	Idle  Choice // "idle": FairShare or FirstComeFirstServe
	Share bool   // "share-unallocated"

	Gang                                  bool            // "gang"
	Timeout, Recovery                     views.TextField // "gang-timeout", "gang-recovery"
	Block                                 bool            // "gang-block"
	RequeueOrder                          Choice          // "requeue-order": Eviction or Creation
	RequeueLimit, RequeueBase, RequeueMax views.TextField // "requeue-limit", "requeue-base", "requeue-most"

	Usage                            bool            // "usage"
	HalfLife, Interval, UsageWeights views.TextField // "usage-half-life", "usage-interval", "usage-weights"

	PreemptionLoops Choice // "preemption-loops": Break or Warn

	Enforcement Choice // "enforcement": RequireQueue or None

	Pools      []PolicyPoolRow
	CanAddPool bool
	PoolsError string
	Currency   views.TextField
	Prices     views.TextField // one price a line
	// AlertRules and AlertReceivers have one a line.
	AlertRules, AlertReceivers views.TextField
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
	Name, Weight, Description views.TextField
	Limit, Longest            views.TextField // default and maximum of the time limit
	Tasks                     string          // number of tasks that use it; empty for none
	Error                     string
}

// PolicyPoolRow is one pool as typed. Inputs are named pool-N-name,
// pool-N-match and pool-N-value, with N from 0.
type PolicyPoolRow struct {
	Name  views.TextField
	Match string // "accelerator", "family", "types" or "labels"
	Value views.TextField
	Nodes string // nodes that match now, such as "2 nodes now"; empty while unknown
	Error string
}

// PoolSuggestions are values of the nodes of this cluster.
type PoolSuggestions struct{ Accelerators, Families, Types []string }

// PolicyReview is the page that shows the effect of saving the policy.
type PolicyReview struct {
	views.Chrome
	InPlace    bool // whether the page is the response to a POST
	Action     string
	CancelURL  string
	Fields     []views.HiddenField // the form as typed
	Preview    views.Preview
	Reason     views.ReasonField
	Unchanged  bool   // whether saving changes nothing
	NoEffect   bool   // whether only settings without effect change, such as the order of rows
	Incomplete string // which checks failed; empty for a complete review
	Settings   []views.ValueChange
	Classes    []ReviewClass
	Pools      []views.ValueChange
	Rerank     string // effect of re-ranking tasks; empty for none
	Gang       string // timeout if gang scheduling is turned on; empty otherwise
	Borrowing  string // tasks that a new strategy for idle compute can preempt; empty for none
	Restart    bool
	Patch      string
	Objects    []views.ObjectLine
}

// ReviewClass is one priority class before and after.
type ReviewClass struct {
	Name, Before, After string
	Tasks               string // such as "12 tasks"; empty for none
	Drop                string // question whether to delete a class that tasks use; empty for none
	Dropped             bool   // whether that was confirmed
}
