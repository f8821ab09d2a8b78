package tasks

import "kuota.dev/kuota/views"

// QuotaSource is whose quota a task uses.
type QuotaSource struct {
	Tone     string // tone of the headline
	Headline string
	Text     string // who could reclaim it
	Pools    []QuotaSourcePool
	Note     string // how it was computed; empty for none
}

// QuotaSourcePool is the usage of a task in one pool, one line per resource.
type QuotaSourcePool struct {
	Name  string
	Lines []string
}

// LastPreemption is the last preemption of a task.
type LastPreemption struct {
	By      *views.TaskLink // nil for a task that the user may not see
	Unnamed string          // text instead of By
	Team    string          // team of By; empty for none
	Rule    string
	At      string // RFC 3339
	Ran     string // running time before the preemption
}

// SizeLine is a change of the number of pods of an elastic task.
type SizeLine struct {
	At   string // RFC 3339
	Tone string
	Pods string // such as "4 pods"
	Text string // why
}

// TaskEvents are the Kubernetes events of a task, or why they are not shown.
type TaskEvents struct {
	Lines   []EventLine
	Trouble string
}

// EventLine is one event.
type EventLine struct {
	At    string // RFC 3339
	Tone  string
	Title string
	About string // kind of the object
	Text  string
	Count string // such as "3 times"; empty for once
}
