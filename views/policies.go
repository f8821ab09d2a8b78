package views

// PoliciesPage shows the compute allocations. The table is the fragment with
// the id allocations.
type PoliciesPage struct {
	Chrome
	Policy      *PolicyCard // nil for a reader who may not see it
	Notice      string      // one sentence after a save, such as "Allocation vision was created."; empty for none
	NewURL      string      // the form for a new allocation
	ImportURL   string      // the page that takes objects as text; empty for those who may not
	CanWrite    bool        // whether this person may create allocations
	Allocations []AllocationRow
	Deleted     []NamedLink // teams that were deleted, with their versions, for who may make them again
	Others      []QuotaLine // what all teams have together that this person may not see
}

// NamedLink is a name that leads somewhere.
type NamedLink struct{ Name, URL string }

// AllocationRow is one team in the allocations table.
type AllocationRow struct {
	Team        string
	DisplayName string // empty when the team has none
	URL         string // its own page
	EditURL     string // empty for those who may not
	DeleteURL   string // empty for those who may not
	Namespace   string
	// NamedNamespace is the existing namespace that the allocation names; empty
	// where the team has its own.
	NamedNamespace string
	Status         Status
	Quota          []QuotaLine
	Sharing        string // such as "Lend and borrow, up to 50 %"
	Preemption     string // such as "Lower priority" or "Never"
	Weight         int64
	Managed        string // such as "Managed by Flux (Kustomization teams)"; empty for nobody else
	Capacity       string // a warning such as "ml.g6.12xlarge: 10 of 8 GPUs given out"; empty when quota fits
	Correction     string // such as "ClusterQueue … was changed by kubectl-edit and put right 10:02:11"; empty for none
}

// QuotaLine is the quota of one team in one pool, with all defaults filled in.
type QuotaLine struct {
	Pool  string
	Parts string // such as "2 GPUs · 48 vCPU · 512 GiB"
}

// Status is a state in one word with the sentence behind it.
type Status struct {
	Tone  string // "ok", "wait", "bad", "pre" or "idle"; never the only carrier of the meaning
	Label string // such as "Active"
	Text  string // the sentence; empty when the label says it all
}
