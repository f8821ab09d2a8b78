package actions

import (
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
)

// writeLimit is how long one action may take.
const writeLimit = 15 * time.Second

// Action is what somebody does to a task.
type Action string

// The actions, as their addresses are called.
const (
	Stop   Action = "stop"   // takes its quota, and keeps it from the queue
	Resume Action = "resume" // has it wait in its queue again
	Front  Action = "front"  // gives it the lowest class that puts it first
	Class  Action = "class"  // gives it another priority class
	Delete Action = "delete" // deletes the job, and with it the task
)

// Service does them.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Tasks   *queries.Service
	Audit   *audit.Recorder
}

// fits tells whether an action means anything to a task as it is.
func (a Action) fits(t *tasks.Task) bool {
	switch a {
	case Stop:
		return !t.NoWorkload && (t.State.UsesQuota() || t.State.Waiting())
	case Resume:
		_, held := t.Hold()
		return t.State == tasks.Stopped || held
	case Front:
		return !t.NoWorkload && t.State.Waiting()
	case Class: // with a class that there is, Kueue makes the Workload that it did not
		return !t.State.Finished() && (!t.NoWorkload || t.Queue != "" && t.State.Waiting())
	}
	return true
}
