package views

// TasksPage is the live list of tasks. The table is the fragment with the id
// tasks.
type TasksPage struct {
	Chrome
	Summary string // such as "12 tasks: 8 running, 4 pending"
	Tasks   []TaskRow
}

// TaskRow is one task.
type TaskRow struct {
	ID           string // stable HTML id of the row
	Name         string
	Kind         string // such as "Job"
	Status       Status
	Reason       string // the first line of Kueue's reason while it waits; empty when it runs
	ReasonStart  string // how a long reason begins, behind which the whole unfolds; empty for a short one
	Team         string // "–" when the namespace belongs to none
	Namespace    string
	Class        string // priority class; "–" for none
	Accelerators string // such as "2 GPUs"; "–" for none
	VCPU         string
	Memory       string // in GiB, without the unit
	Pool         string // where it was admitted; "–" while it waits
	Submitted    string // RFC 3339, shown in the viewer's zone
	SubmittedAgo string // such as "2 h 05 m", as of rendering
}
