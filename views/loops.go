package views

// LoopNotice says on top of a page that preemption loops go on.
type LoopNotice struct {
	Title string // such as "2 preemption loops"
	Lines []LoopLine
	More  string // such as "and 3 more"; empty for none
}

// LoopLine is one preemption loop: which task is preempted for which, and what
// becomes of it.
type LoopLine struct {
	ID        string // stable HTML id
	Tone      string // "bad" while it goes on, "wait" while it is held, "ok" when it is broken
	Preempted TaskLink
	For       TaskLink
	Times     string // such as "14 times in 9 s"
	Cause     string // a sentence
	State     string // what Kuota does about it: a sentence or two
	Until     string // RFC 3339: when a hold ends at the latest; empty without one
}
