package policy

import "kuota.dev/kuota/views"

// PolicyForm is a page that edits a part of the cluster policy. The form is the fragment with
// the id policy-form. Inputs are text as typed.
type PolicyForm struct {
	views.Chrome
	views.TypedForm
	Lead       string
	UpLabel    string
	Action     string // where the form is posted
	CancelURL  string
	NoPolicy   bool     // there is no policy that the part could belong to
	CreateURL  string   // of the form that creates it
	Parts      []string // hidden inputs part: what the form changes besides
	SaveText   string   // of the button that saves
	Simulated  bool     // whether saving can have an effect on tasks
	Unchanged  bool     // whether saving changes nothing
	Version    string   // hidden input resource-version
	Generation string   // hidden input generation
	Imported   views.Imported
	Submitted  bool   // hidden input submitted: after the first review, all errors are shown
	Resumed    bool   // whether it has the typed values after signing in again
	Failure    string // why it failed as a whole; empty for none
	Errors     []views.Message
	Restored   views.Restored // set for a form with the values of an older version
	Reason     string         // hidden input reason, which the review requires
	Drop       []string       // hidden inputs drop: classes confirmed for deletion in a review

	Cluster  bool   // the form has the inputs from here to Enforcement
	More     string // what is set under More settings; empty for nothing
	MoreOpen bool

	Prioritization Choice  // input "prioritization": FirstComeFirstServe or TaskRanking
	Classes        RowList // class-N-name, -weight, -description, -limit and -longest
	Classless      string  // number of tasks without a priority class, such as "3 tasks"; empty for none

	Numbers      bool // "numeric-priorities"
	NumbersError string

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

	Pools *RowList // pool-N-name, -match and -value; nil for a form without pools
	Over  *RowList // over-N-pool and -percent, with Pools

	Resources *RowList // resource-N-name, -label and -unit, with Pools

	Currency views.TextField // "price-currency"
	Prices   *RowList        // price-N-pool, -resource, -from, -own and -borrowed; nil for a form without prices

	Rules      []RuleRow // rule-N-rule, -on and -limit
	ClassRules RowList   // rule-N-class, -on and -limit, after those
	Receivers  *RowList  // receiver-N-name, -type, -secret, -to, -team, -severity and -notices; nil for a form without alerts

	Suggestions []Suggestions
}

// Suggestions are values that can be chosen instead of typed.
type Suggestions struct {
	ID     string // of the datalist
	Values []string
}

// RuleRow is an alert rule as typed.
type RuleRow struct {
	Name, Title, Meaning string
	On                   bool
	Limit                views.TextField
	Usual                string // its limit without a policy; empty for a rule that has none
}

// Choice is one of several values.
type Choice struct {
	Value string
	Error string // set for an invalid value
}

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
	Warnings   []views.Message
	UpLabel    string
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
