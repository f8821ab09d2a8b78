package allocations

import "kuota.dev/kuota/views"

// PoliciesPage shows the compute allocations. The table is the fragment with
// the id allocations.
type PoliciesPage struct {
	views.Chrome
	Policy      *views.PolicyCard // nil without permission
	Notice      string            // one sentence after a save, such as "Allocation vision was created."; empty for none
	NewURL      string            // the form for a new allocation
	ImportURL   string            // page of the import; empty without permission
	AdoptURL    string            // page that adopts existing ClusterQueues; empty if there are none, or without permission
	Unmanaged   int               // ClusterQueues that it shows
	CanWrite    bool              // whether the user may create allocations
	Allocations []AllocationRow
	Deleted     []NamedLink // deleted teams with their versions, for users who may create teams
	Others      []QuotaLine // sum of the quota of teams that the user may not see
}

// NamedLink is a link.
type NamedLink struct{ Name, URL string }

// AllocationRow is one team in the allocations table.
type AllocationRow struct {
	Team        string
	DisplayName string // empty for none
	URL         string // page of the allocation
	EditURL     string // empty without permission
	DeleteURL   string // empty without permission
	Namespace   string
	// NamedNamespace is the existing namespace that the allocation names; empty if
	// Kuota created the namespace.
	NamedNamespace string
	Status         views.Status
	Quota          []QuotaLine
	Overrides      []string // sentences about windows and the budget that replace it
	Sharing        string   // such as "Lend and borrow, up to 50 %"
	Preemption     string   // such as "Lower priority" or "Never"
	Weight         int64
	Observed       bool   // whether Kuota only shows the queue, so that sharing, preemption and weight are unknown
	Managed        string // such as "Managed by Flux (Kustomization teams)"; empty for none
	Capacity       string // a warning if the quota of all teams exceeds the capacity; empty otherwise
	Correction     string // the last correction of its objects; empty for none
}

// QuotaLine is the quota of one team in one pool, including defaults.
type QuotaLine struct {
	Pool  string
	Parts string // such as "2 GPUs · 48 vCPU · 512 GiB"
}
