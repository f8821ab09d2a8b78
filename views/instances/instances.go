package instances

import (
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// InstancesPage shows the pools and nodes of the cluster. Both tables are the
// fragment with the id instances.
type InstancesPage struct {
	views.Chrome
	EditURL   string // of the form of the pools; empty for readers who may not change them
	Summary   string // such as "12 instances: 10 ready, 1 pending recovery, 1 cordoned"
	Pools     []PoolFigures
	PoolsCSV  string // address of the pools as CSV
	Action    string // address of the filter form
	Text      string // search text
	Filters   []views.Filter
	ClearURL  string // the list without filters; empty if none is set
	Sort      string // requested order, as in the address; empty for the default
	Order     string
	Found     string // such as "3 found"; empty without filters
	Heads     []ui.Head
	Nodes     []NodeRow
	Pager     views.Pager
	CSVURL    string
	ExportURL string // all tables in one file
}

// PoolFigures is one resource of a pool. The first row of a pool has its nodes.
type PoolFigures struct {
	ID       string // stable HTML id of the row
	Pool     string
	SamePool bool   // whether the row above has the same pool
	URL      string // the pool's nodes
	Note     string // such as "H100 · 80 GB"
	Types    string // instance types, if they differ from the name of the pool
	Nodes    string // number of nodes
	States   []views.Status
	Resource string // such as "GPUs"
	views.PoolNumbers
	Used string
}

// NodeRow is one node.
type NodeRow struct {
	ID, Name, Pool, Type      string
	PoolURL                   string // nodes of the pool; empty for none
	Dashboard                 views.ExternalLink
	Status                    views.Status
	Since                     string // RFC 3339, start of an unusual state; empty if unknown
	Accelerators, Bound, Free string // of accelerators; "–" for none
	VCPU, Memory              Amounts
	Pods                      string
	Teams                     []NodeTeam // teams that use the node
	Figures                   []NodeFigure
	Created                   string // RFC 3339
	Age                       string
}

// Amounts is usage and capacity.
type Amounts struct{ Bound, Of string }

// NodeTeam is the usage of one team on a node.
type NodeTeam struct {
	Name string
	URL  string // empty for teams that the user may not see
	Text string // such as "4 GPUs · 96 vCPU"
}

// NodeFigure is one resource of a node.
type NodeFigure struct {
	Resource string // with its unit, such as "Memory, GiB"
	Text     string // such as "8 physical, 8 for pods: 5 bound, 1 outside Kueue, 2 free"
}
