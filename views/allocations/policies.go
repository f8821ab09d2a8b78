package allocations

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

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
	Total       int               // allocations that the user may see
	Note        string            // how many of them the filters select
	Action      string            // address of the filter form
	Text        string            // search text
	Filters     []views.Filter
	ClearURL    string // the list without filters; empty if none is set
	Sort, Order string // as in the address; empty for the default
	Heads       []ui.Head
	Allocations []AllocationRow // of this page
	Pager       views.Pager
	CSVURL      string // all that the filters select
	JSONURL     string
	Over        []PoolExcess
	Many        *views.ManyForm   // nil for readers who may do nothing to many teams
	Deleted     []views.NamedLink // deleted teams with their versions, for users who may create teams
	MoreDeleted int               // further ones
	Others      []QuotaLine       // sum of the quota of teams that the user may not see
}

// PoolExcess is a pool that has less than all teams are allocated.
type PoolExcess struct {
	Pool string
	URL  string // the list of the teams with quota in it
	Text string // such as "10 of 8 GPUs allocated"
}

// AllocationRow is one team in the allocations table.
type AllocationRow struct {
	Team        string
	DisplayName string // empty for none
	URL         string // page of the allocation
	EditURL     string // empty without permission
	DeleteURL   string // empty without permission
	Namespace   string
	Status      views.Status
	Quota       []QuotaLine
	Overrides   []string // sentences about windows and the budget that replace it
	Sharing     string   // such as "Lend and borrow, up to 50 %"
	Preemption  string   // such as "Lower priority" or "Never"
	Weight      int64
	Observed    bool   // whether Kuota only shows the queue, so that sharing, preemption and weight are unknown
	Managed     string // such as "Managed by Flux (Kustomization teams)"; empty for none
	Correction  string // the last correction of its objects; empty for none
}

// QuotaLine is the quota of one team in one pool, including defaults.
type QuotaLine struct {
	Pool  string
	Parts string // such as "2 GPUs · 48 vCPU · 512 GiB"
}
