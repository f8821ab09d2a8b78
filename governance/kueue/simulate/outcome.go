package simulate

import (
	"time"

	"kuota.dev/kuota/governance/quota"
)

// Outcome is what the scheduler did with a snapshot.
type Outcome struct {
	// Events are in the order in which they happened; at the same time and in the
	// same scheduling cycle, by Workload.
	Events []Event `json:"events,omitempty"`
	// Settled reports that the scheduler had nothing left to do. Without it the
	// run stopped for another reason: its end was reached.
	Settled bool `json:"settled"`
	// Cut reports that the time for the run was over before its end.
	Cut bool `json:"cut,omitempty"`
	// Queues are the ClusterQueues by name, at the end.
	Queues map[string]Queue `json:"queues,omitempty"`
	// Exceeding are the keys of the Workloads that wait for more than their queue
	// can ever have.
	Exceeding map[string]bool `json:"exceeding,omitempty"`
	// Untried are the keys of the Workloads that wait in a queue that is not active,
	// such as one on hold: whether they are Exceeding is not known.
	Untried map[string]bool `json:"untried,omitempty"`
}

// EventKind is what happened to a Workload.
type EventKind string

// The kinds of events.
const (
	Started   EventKind = "Started"   // quota was reserved
	Preempted EventKind = "Preempted" // evicted for another Workload
	Evicted   EventKind = "Evicted"   // for another reason
	Finished  EventKind = "Finished"  // its run time was over
)

// Event is what happened to one Workload.
type Event struct {
	Kind         EventKind     `json:"kind"`
	After        time.Duration `json:"after"` // of virtual time, since the snapshot
	Workload     string        `json:"workload"`
	ClusterQueue string        `json:"clusterQueue"`
	// Usage is what a started Workload uses, and what a preempted one used.
	Usage quota.FlavorResourceQuantities `json:"usage,omitempty"`
	// By and Reason are of a preemption: the Workload for which it happened, and
	// Kueue's reason, such as InClusterQueue.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Again is not about the Workload as it is in the snapshot: a start of one that
	// has quota there, and the loss of quota by one that waits there.
	Again bool `json:"again,omitempty"`
	// Lost is of a started Workload that loses its quota again before the end.
	Lost bool `json:"lost,omitempty"`
}

// Queue is the usage of a ClusterQueue.
type Queue struct {
	Usage   quota.FlavorResourceQuantities `json:"usage,omitempty"`
	Pending int                            `json:"pending"`
}
