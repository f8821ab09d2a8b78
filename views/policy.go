package views

// PolicyCard is the cluster policy as the policies page shows it: the fragment
// with the id cluster-policy.
type PolicyCard struct {
	Exists   bool // false while there is no policy: then the card says what applies without one
	MayEdit  bool
	EditURL  string
	Status   Status          // of the policy as a whole
	Progress *PolicyProgress // nil while nothing is under way
	Parts    []PolicyPart    // in the order in which they stand
	Managed  string          // who manages it, and where to change it; empty for nobody else
	YAML     string          // the policy as YAML, and the address of that as a file
	YAMLURL  string
	Patch    string  // what to change in Kueue by hand; empty when policy and Kueue agree
	History  History // the last versions
}

// PolicyProgress is how far tasks have their new priorities.
type PolicyProgress struct {
	Text        string
	Done, Tasks int // Tasks 0: not counted yet
}

// PolicyPart is one component of the policy: what it says, and whether the
// cluster does it.
type PolicyPart struct {
	ID, Label string
	Value     string      // such as "By priority class"
	Text      string      // what that means
	Classes   []ClassLine // for the ranking, high first
	Pools     []PoolLine  // for pools, in the order in which they match
	Status    Status      // empty label for a part that nothing is reported of
}

// ClassLine is one priority class.
type ClassLine struct {
	Name, Weight, Description string
	Object                    string // what tasks write into their label
}

// PoolLine is one pool: what it matches, and how many nodes that is now.
type PoolLine struct{ Name, Match, Nodes string }

// PolicyForm is the page that edits the cluster policy. The whole form is the
// fragment with the id policy-form. All inputs are text as typed.
type PolicyForm struct {
	Chrome
	TypedForm
	Action     string // where the form is posted
	CancelURL  string
	New        bool   // whether there is no policy yet
	Version    string // hidden input resource-version
	Generation string // hidden input generation
	Imported   Imported
	Submitted  bool   // hidden input submitted: a review was tried, so that all that is wrong is told from then on
	Resumed    bool   // whether it comes back as it was typed, after signing in again
	Failure    string // what stopped it as a whole; empty for none
	Errors     []Message
	Restored   Restored // the older version that it opens with, if any
	Reason     string   // hidden input reason, which the review asks for
	Drop       []string // hidden inputs drop: what was ticked in a review

	Prioritization Choice // input "prioritization": FirstComeFirstServe or TaskRanking
	Classes        []PolicyClassRow
	CanAddClass    bool
	ClassesError   string
	Classless      string // how many tasks have no class, such as "3 tasks"; empty for none

	Idle  Choice // "idle": FairShare or FirstComeFirstServe
	Share bool   // "share-unallocated"

	Gang                                  bool      // "gang"
	Timeout, Recovery                     TextField // "gang-timeout", "gang-recovery"
	Block                                 bool      // "gang-block"
	RequeueOrder                          Choice    // "requeue-order": Eviction or Creation
	RequeueLimit, RequeueBase, RequeueMax TextField // "requeue-limit", "requeue-base", "requeue-most"

	PreemptionLoops Choice // "preemption-loops": Break or Warn

	Enforcement Choice // "enforcement": RequireQueue or None

	Pools       []PolicyPoolRow
	CanAddPool  bool
	PoolsError  string
	Suggestions PoolSuggestions
}

// Choice is one of several values.
type Choice struct {
	Value string
	Error string // set when something else was posted
}

// PolicyClassRow is one priority class as typed. Inputs are named
// class-N-name, class-N-weight and class-N-description, with N from 0.
type PolicyClassRow struct {
	Name, Weight, Description TextField
	Tasks                     string // who names it now, such as "12 tasks name it"; empty for none
	Error                     string
}

// PolicyPoolRow is one pool as typed. Inputs are named pool-N-name,
// pool-N-match and pool-N-value, with N from 0.
type PolicyPoolRow struct {
	Name  TextField
	Match string // "accelerator", "family", "types" or "labels"
	Value TextField
	Nodes string // what it would have, such as "2 nodes now"; empty while nothing is known
	Error string
}

// PoolSuggestions are what nodes here have, to match by.
type PoolSuggestions struct{ Accelerators, Families, Types []string }

// PolicyReview is the page that says what saving would do.
type PolicyReview struct {
	Chrome
	InPlace    bool // whether the page answers a POST
	Action     string
	CancelURL  string
	Fields     []HiddenField // the form as typed
	Reason     ReasonField
	Unchanged  bool   // whether saving would change nothing
	NoEffect   bool   // whether it changes only what nothing shows, such as the order of rows
	Incomplete string // what could not be looked at; empty when all was
	Settings   []ReviewLine
	Classes    []ReviewClass
	Pools      []ReviewLine
	Rerank     string // what giving tasks new priorities means here; empty when none get any
	Gang       string // within what time pods have to be ready where gang scheduling is switched on; empty otherwise
	Borrowing  string // what the strategy for idle compute preempts, where that changes; empty otherwise
	Restart    bool
	Patch      string
	Objects    []ReviewObject
}

// ReviewLine is one value before and after; empty for none.
type ReviewLine struct{ Label, Before, After, Note string }

// ReviewClass is one priority class before and after.
type ReviewClass struct {
	Name, Before, After string
	Tasks               string // such as "12 tasks"; empty for none
	Drop                string // asks whether it goes although tasks name it; empty where there is nothing to ask
	Dropped             bool   // whether that was ticked
}

// ReviewObject is one object of Kueue that changes.
type ReviewObject struct {
	Kind, Name, Action string
	Lines              []ReviewLine
}

// PolicyConflict is the page that shows two versions side by side.
type PolicyConflict struct {
	Chrome
	InPlace  bool // whether the page answers a POST
	Action   string
	TheirURL string        // the form as it is saved now
	Fields   []HiddenField // what was typed, on top of the version that is there now
	Deleted  bool          // whether the policy was deleted in between
	Lines    []PolicyConflictLine
	Differ   int // how many lines differ
}

// PolicyConflictLine is one value in both versions.
type PolicyConflictLine struct {
	Label, Theirs, Mine string
	Differs             bool
}
