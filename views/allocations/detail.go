package allocations

import "kuota.dev/kuota/views"

// AllocationDetail is the page of one allocation. Its live part is the fragment
// with the id allocation.
type AllocationDetail struct {
	views.Chrome
	Team        string
	DisplayName string
	Description string
	Notice      string // one sentence after a save; empty for none
	TabsOf      string // team; empty while it has no namespace
	UpURL       string // the policies page

	EditURL, DeleteURL string // empty without permission
	HoldURL, ResumeURL string // empty without permission; at most one is set

	Overrides     []string // sentences about windows and the budget
	Managed       string   // the tool that manages it, and where to change it; empty for none
	YAML, YAMLURL string   // as YAML, and the address of that as a file

	Status     views.Status
	Conditions []ConditionLine
	Correction string // the last correction of its objects; empty for none
	QuotaNote  string // a remark on the quota, such as that the last valid one is still applied
	Quota      []QuotaFigure

	Namespace, ClusterQueue, LocalQueue string
	Members                             []string
	Settings                            []views.ValueLine
	History                             views.History
}

// ConditionLine is one condition.
type ConditionLine struct {
	Name   string
	Status views.Status
	Since  string // RFC 3339; empty for now
}

// QuotaFigure is the quota for one resource of one pool, including defaults.
// Figures are grouped by pool.
type QuotaFigure struct {
	Pool     string
	SamePool bool   // whether the row above has the same pool: the name is only read aloud
	Note     string // such as "borrows only"
	Resource string
	Own      string
	Borrow   string // borrow limit
}
