package views

// AllocationDetail is everything about one allocation. What changes by itself
// is the fragment with the id allocation.
type AllocationDetail struct {
	Chrome
	Team        string
	DisplayName string
	Description string
	Notice      string     // one sentence after a save; empty for none
	Reclaimable []OverLine // what its tasks use beyond its quota, where it was saved just now
	TeamURL     string     // the team: its tasks and usage; empty where there is none
	UpURL       string     // the policies page

	EditURL, DeleteURL string // empty for those who may not
	HoldURL, ResumeURL string // the same; one of them at most

	Managed       string // who manages it, and where to change it; empty for nobody else
	YAML, YAMLURL string // the allocation as YAML, and the address of that as a file

	Status     Status
	Conditions []ConditionLine
	Capacity   string // a warning such as "ml.g6.12xlarge: 10 of 8 GPUs given out"; empty when quota fits
	Correction string // the last time something was put right; empty for never
	QuotaNote  string // what to know of the figures, such as that the last ones stay in force
	Quota      []QuotaFigure

	Namespace, ClusterQueue, LocalQueue string
	Members                             []string
	Settings                            []ValueLine
	History                             History
}

// ConditionLine is one condition in words.
type ConditionLine struct {
	Name   string
	Status Status
	Since  string // RFC 3339
}

// QuotaFigure is one resource of one pool, with its default filled in. The
// figures of a pool follow one another.
type QuotaFigure struct {
	Pool     string
	SamePool bool   // whether the line above is of the same pool: its name is read aloud only
	Note     string // such as "borrows only"
	Resource string
	Own      string
	Borrow   string // what may be borrowed on top
}

// ValueLine is one value with its name.
type ValueLine struct{ Name, Value string }
