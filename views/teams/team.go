package teams

import "kuota.dev/kuota/views"

// TeamPage is the page of a team: quota, usage, queue and past tasks.
type TeamPage struct {
	views.Chrome
	Path        []views.NamedLink // the list of teams, and the departments above it
	Facts       []views.ValueLine // namespace, queue, pools
	Usage       TeamUsage
	Past        *TeamPast      // nil without history
	DisplayName string         // empty for none
	Notice      views.TaskLink // a submitted task that is not listed yet; no name: none
	SubmitURL   string         // the page that submits a task
	MaySubmit   bool           // otherwise that page has manifests only
	Dashboard   views.ExternalLink
}

// SubmitPage submits a task to a team.
type SubmitPage struct {
	views.Chrome
	Team, TeamURL string
	Lead          string
	Kinds         []views.Tab // links to the pages of other kinds of tasks
	NoForm        string      // why there is no form; empty if there is one
	Form          *SubmitForm // nil without permission
	Manifests     SubmitManifests
	ManifestURL   string // the page that submits a task from a manifest
	TemplatesURL  string // the page with the templates of the team
}

// ManifestPage submits an elastic task from a manifest.
type ManifestPage struct {
	views.Chrome
	Team, TeamURL, Action string
	RequestID             string // as of SubmitForm
	Resumed               bool   // whether the text was kept while the user signed in again
	Failure               string // why it failed as a whole; empty for none
	Text                  views.TextField
	Again                 string   // task whose manifest it is; empty for another text
	Name, Kind            string   // of the task that was read; empty for none
	YAML                  string   // as it is submitted; empty for none
	InForm                bool     // whether the form can express it
	Missed                []string // what the form cannot express
	FormURL, TemplatesURL string
	NotImported           []string // parts of the text
	Wrong                 []string // why the task cannot be submitted
	Verdict               *SubmitVerdict
}

// TemplatesPage has the templates of a team.
type TemplatesPage struct {
	views.Chrome
	Team, TeamURL, SubmitURL, Action string
	Saved, Deleted                   string // template; empty for none
	Unknown                          bool   // whether the templates cannot be read
	MaySave                          bool   // whether the user can save and delete templates
	Rows                             []TemplateRow
	Recipes                          []RecipeRow
	Text, Kind                       string // of a task to save; empty for none
	Name                             views.TextField
	Failure                          string // why it was not saved; empty for none
}

// TemplateRow is a template. URL is the form with its values.
type TemplateRow struct{ Name, Kind, Created, URL string }

// RecipeRow is a task that Kuota comes with. URL is the form with its values.
type RecipeRow struct {
	Name, Title, About, URL string
	NotRun                  string // why no test runs it; empty for what they run
}

// SubmitForm is the form that submits a task. With its verdict and manifests it is
// the fragment with the id submit-form: the server renders it again on every
// change. Inputs are text as typed.
type SubmitForm struct {
	Action       string
	ManifestURL  string // of the page that edits the task as YAML; empty for none
	TemplatesURL string // of the page that saves it as a template; empty for none
	RequestID    string // hidden input request-id: identifies repeated submissions
	User         string // hidden input as: the user who opened the form
	// CanElastic is whether elastic tasks can be submitted.
	CanElastic bool
	MayScript  bool   // whether the user can submit a script
	Submitted  bool   // hidden input submitted: after the first submission, all errors are shown
	Resumed    bool   // whether it has the typed values after signing in again
	Failure    string // why it failed as a whole; empty for none
	Errors     []views.Message

	Name         views.TextField   // input name "name", and so on
	Kind         views.SelectField // without options for a service
	Share        views.SelectField // without options if the user can choose none
	Class        views.SelectField
	Priority     *views.TextField // by number; nil where the policy allows none
	Pool         views.SelectField
	OtherPools   views.SelectField // checkboxes named other-pools
	Pods         views.TextField
	Accelerators views.AmountField
	Unit         string // name of the accelerators
	VCPU         views.AmountField
	Memory       views.AmountField // in GiB
	Partitions   []string          // MIG profiles of the pool's GPUs
	Profile      views.TextField
	Count        views.TextField
	Image        views.TextField
	Command      views.TextField
	Script       views.TextField // instead of a command
	Least        views.TextField
	Limit        views.AmountField // such as 1h30m
	LongestLimit string            // of the class; empty for no maximum
	Env          views.TextField   // one in each line, as Secrets and Volumes
	Secrets      views.TextField
	Volumes      views.TextField
	SharedMemory views.TextField // in GiB
	Account      views.TextField
	Processes    views.TextField
	Tries        HintedField
	Array, After views.TextField
	Elastic      bool
	Max          views.AmountField // of an elastic task, and so on
	Step         views.AmountField
	Sizes        views.TextField
	Graceful     views.AmountField // in seconds
	Scaling      views.AmountField
	Faulty       views.AmountField
	Rest         views.AmountField
	LongestRest  views.AmountField
	Scale        views.TextField // variables by size: SIZE NAME=value, one in each line
	Provision    ProvisionFields
	Serving      *ServingFields // of a service; nil for a task that ends
	NodeCapacity string         // capacity of a node of the pool for pods; empty while unknown

	Verdict   *SubmitVerdict // nil while there are errors
	Manifests SubmitManifests
}

// ProvisionFields are the inputs of an elastic task that asks for nodes.
type ProvisionFields struct {
	Asks                 bool
	Error                string            // of Asks
	Unscheduled, Timeout views.AmountField // in pods and in seconds
}

func (f ProvisionFields) set() bool {
	return f.Asks || f.Error != "" || f.Unscheduled.Error != "" || f.Timeout.Error != ""
}

// HintedField is a text input whose hint depends on others.
type HintedField struct {
	views.TextField
	Hint string
}

// SubmitVerdict is whether the task would be admitted now.
type SubmitVerdict struct {
	Tone     string // "ok", "wait", "bad" or "idle"
	Headline string
	Text     string
	Notes    []string
	Growth   string // how far an elastic task could grow now
	Steps    []views.WhyStep
	Changes  []views.WhyChange

	Verify    bool   // the page asks for a simulation
	Verified  bool   // by a simulation
	Checked   string // whether it was simulated, or why not
	Preempted []views.AdmittedTaskLink
	Missed    []views.AdmittedTaskLink // tasks that would start without it
}

// SubmitManifests is the task as manifests of several kinds.
type SubmitManifests struct {
	Lead    string // introduction
	Sources []SubmitSource
}

// SubmitSource is one manifest; without Text, Note explains why.
type SubmitSource struct {
	ID    string // such as "manifest-job"
	Title string // such as "Job"
	Text  string
	Note  string
}
