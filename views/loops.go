package views

// LoopNotice warns of current preemption loops.
type LoopNotice struct {
	Title string // such as "2 preemption loops"
	Lines []LoopLine
	More  string // such as "and 3 more"; empty for none
}

// LoopLine is one preemption loop: the task that is preempted, the task that it is
// preempted for, and what Kuota does.
type LoopLine struct {
	ID        string // stable HTML id
	Tone      string // "bad": current; "wait": the preempted task is on hold; "ok": broken
	Preempted TaskLink
	For       TaskLink
	Times     string // such as "14 times in 9 s"
	Cause     string // a sentence
	State     string // what Kuota does: one or two sentences
	Until     string // RFC 3339: latest end of the hold; empty without one
}
