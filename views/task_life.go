package views

// TaskBacking says whose quota a task holds.
type QuotaSource struct {
	Tone     string // of the headline, as of a tag
	Headline string
	Text     string // what would take it back
	Pools    []QuotaSourcePool
	Note     string // how it was worked out; empty for nothing
}

// BackingPool is what a task holds in one pool: a line for each resource.
type QuotaSourcePool struct {
	Name  string
	Lines []string
}

// TaskLoss says what a task was preempted for.
type LastPreemption struct {
	By      *TaskLink // nil where it cannot be named
	Unnamed string    // in its place
	Team    string    // of By; empty for none
	Rule    string
	At      string // RFC 3339
	Ran     string // how long before that
}

// SizeLine is a size that a task came to.
type SizeLine struct {
	At   string // RFC 3339
	Tone string
	Pods string // such as "4 pods"
	Text string // why
}

// TaskNotices are the events of Kubernetes about a task, or why they are not
// shown.
type TaskEvents struct {
	Lines   []EventLine
	Trouble string
}

// NoticeLine is one event.
type EventLine struct {
	At    string // RFC 3339
	Tone  string
	Title string
	About string // the kind of the object
	Text  string
	Count string // such as "3 times"; empty for once
}
