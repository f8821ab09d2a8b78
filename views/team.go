package views

// TeamPage is a team's own page: what it has and holds, where its tasks go, and
// how one is submitted.
type TeamPage struct {
	Chrome
	Facts         []ValueLine // namespace, queue, pools
	Usage         TeamUsage
	Past          *TeamPast // nil without history
	DisplayName   string    // empty for none
	TasksURL      string
	AllocationURL string
	Notice        TaskLink    // a task that was submitted and is not listed yet; without a name there is none
	NoForm        string      // why nothing can be submitted here; empty where there is the form
	Form          *SubmitForm // nil for who may not submit
	Manifests     SubmitManifests
}

// SubmitForm is the form that submits a task. The whole form is the fragment
// with the id submit-form, with what is said of the task and its manifests; it
// is rendered again by the server on every change. All inputs are text as typed.
type SubmitForm struct {
	Action    string
	RequestID string // hidden input request-id: makes a repeated submission one task
	User      string // hidden input as: who opened the form
	Submitted bool   // hidden input submitted: all that is wrong is told from then on
	Resumed   bool   // whether it comes back as it was typed, after signing in again
	Failure   string // what stopped it as a whole; empty for nothing
	Errors    []Message

	Name         TextField // input name "name", and so on
	Class        SelectField
	Pool         SelectField
	Pods         TextField
	Accelerators AmountField
	Unit         string // what its accelerators are called
	VCPU         AmountField
	Memory       AmountField // in GiB
	Partitions   []string    // profiles that the pool's GPUs can be cut into
	Profile      TextField
	Count        TextField
	Image        TextField
	Command      TextField
	Least        TextField
	Elastic      bool
	NodeCapacity string // what a node of the pool has for pods; empty while that is unknown

	Verdict   *SubmitVerdict // nil while something is wrong
	Manifests SubmitManifests
}

// SelectField is one of several values, in a select.
type SelectField struct {
	Options []Option
	Error   string
}

// SubmitVerdict says how the task would fare.
type SubmitVerdict struct {
	Tone     string // "ok", "wait", "bad" or "idle"
	Headline string
	Text     string
	Notes    []string
	Steps    []WhyStep
	Changes  []WhyChange
}

// SubmitManifests are the same task in several notations.
type SubmitManifests struct {
	Lead    string // a sentence above
	Sources []SubmitSource
}

// SubmitSource is one notation; without Text, Note says why there is none.
type SubmitSource struct {
	ID    string // such as "manifest-job"
	Title string // such as "Job"
	Text  string
	Note  string
}
