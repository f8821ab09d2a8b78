package departments

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// DepartmentPage is the page of a department.
type DepartmentPage struct {
	views.Chrome
	Name        string
	Description string
	Path        []views.NamedLink // departments above it, from the top
	Brief       bool              // whether the reader sees the quota only
	Notice      string            // what was just done; empty for nothing
	Managed     string            // who changes it instead of its pages; empty for none
	Status      views.Status      // no label where it is applied
	Overrides   []string          // sentences about windows and the budget

	EditURL, DeleteURL, NewURL, NewTeamURL string // empty where the reader may not

	Rows     []ResourceRow
	Loans    []LoanLine
	Below    views.DepartmentTable
	Members  []string
	Settings []views.ValueLine
	// ActivityURL lists who changed it.
	ActivityURL   string
	YAML, YAMLURL string
}

// ResourceRow is one resource of a pool.
type ResourceRow struct {
	ID, Pool                                        string
	SamePool                                        bool
	Model                                           string // of its accelerators; empty for none
	Resource                                        string
	Meter                                           ui.MeterProps
	Quota, Allocated, Reserve, Used, Borrowed, Lent string
	Borrowing                                       bool
}

// LoanLine is what a department borrows from another, or lends to it.
type LoanLine struct {
	Lends     bool
	Amount    string // such as "2 GPUs of ml.p5.48xlarge"
	Who       string // "" for the shared compute
	URL       string // of Who; empty for none
	Since     string // RFC 3339; empty where it is not known or long ago
	Long      string // such as "for more than a day"; empty for less
	WhoPrefix string // such as "team"
}
