package actions

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Action is an action on a task.
type Action string

// The actions, as in their URLs.
const (
	Stop   Action = "stop"   // deactivates it, or scales it to 0: it loses its quota and leaves the queue
	Resume Action = "resume" // activates it, or scales it back: it waits in its queue again
	Scale  Action = "scale"  // sets the number of replicas of a service
	Front  Action = "front"  // sets the lowest priority class that moves it to the front
	Class  Action = "class"  // sets another priority class
	Resize Action = "resize" // sets other sizes of an ElasticJob
	Delete Action = "delete" // deletes the job
)

// Service reviews and executes actions. It is safe for concurrent use.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Tasks   *queries.Service
	Audit   *audit.Recorder
}

// applies reports whether the action applies to a task in its state.
func (a Action) applies(t *tasks.Task) bool {
	switch a {
	case Stop:
		return (!t.NoWorkload || t.IsServing()) && (t.State.UsesQuota() || t.State.Waiting())
	case Resume:
		_, held := t.Hold()
		return t.State == tasks.Stopped || held
	case Front:
		return !t.NoWorkload && t.State.Waiting()
	case Class: // with an existing class Kueue creates the missing Workload
		return !t.State.Finished() && (!t.NoWorkload || t.Queue != "" && t.State.Waiting())
	case Scale:
		return !t.State.Finished() && t.ScalesByReplica()
	case Resize:
		return !t.State.Finished() && t.Kind == v1alpha1.ElasticJobKind
	}
	return true
}
