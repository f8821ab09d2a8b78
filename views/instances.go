package views

// InstancesPage is the pools and the nodes of the cluster. Both tables are the
// fragment with the id instances.
type InstancesPage struct {
	Chrome
	Summary  string // such as "12 instances: 10 ready, 1 pending recovery, 1 cordoned"
	Pools    []PoolFigures
	PoolsCSV string // address of the pools as CSV
	Action   string // where the filters are sent
	Text     string // searched for
	Filters  []Filter
	ClearURL string // the list without its filters; empty when it has none
	Sort     string // the order that was asked for, as the address has it; empty for the usual one
	Order    string
	Found    string // such as "3 found"; empty without filters
	Heads    []ColumnHead
	Nodes    []NodeRow
	Pager    Pager
	CSVURL   string
}

// PoolFigures is one resource of a pool; the first of a pool tells of its nodes.
type PoolFigures struct {
	ID            string // stable HTML id of the row
	Pool          string
	SamePool      bool   // the pool is that of the row above
	URL           string // the pool's nodes
	Note          string // such as "H100 · 80 GB"
	Types         string // instance types, where they are not the pool's name
	Nodes         string // how many
	States        []Status
	Resource      string // such as "GPUs"
	Bar           BarRow // what of it is bound, and by what; the mark is the sum of quotas
	Max           float64
	Physical      string
	Own, Borrowed string // bound, on the own quota of teams and beyond it
	Quota         string
	Over          string // such as "2 over"; empty where there is enough
	Used          string
	Outside       string // by pods that Kueue does not manage
	Unhealthy     string // used by nobody, on nodes that take no tasks
	Idle          string
	Largest       string // free on one node
}

// NodeRow is one node.
type NodeRow struct {
	ID, Name, Pool, Type      string
	PoolURL                   string // the pool's nodes; empty for a node of none
	Status                    Status
	Since                     string // RFC 3339, of a state that is not the usual one; empty where that is not known
	Accelerators, Bound, Free string // of accelerators; "–" for none
	VCPU, Memory              Amounts
	Pods                      string
	Teams                     []NodeTeam // that hold something of it
	Figures                   []NodeFigure
	Created                   string // RFC 3339
	Age                       string
}

// Amounts is how much of something is bound, and how much there is.
type Amounts struct{ Bound, Of string }

// NodeTeam is a team that holds something of a node.
type NodeTeam struct {
	Name string
	URL  string // empty for teams that are not named
	Text string // such as "4 GPUs · 96 vCPU"
}

// NodeFigure is one resource of a node.
type NodeFigure struct {
	Resource string // with its unit, such as "Memory, GiB"
	Text     string // such as "8 physical, 8 for pods: 5 bound, 1 outside Kueue, 2 free"
}
