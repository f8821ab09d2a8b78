package views

// PastRow is one finished or deleted task.
type PastRow struct {
	ID            string // stable HTML id of the row
	Task          TaskLink
	Kind          string
	Status        Status // Text is such as "deleted"; empty for none
	Team          string // "–" for none
	Namespace     string
	PriorityClass string
	Requests      string
	Pool          string
	Submitted     string // RFC 3339
	Ended         string // RFC 3339; empty if unknown
	Ran           string
	Preemptions   string
}
