package simulate

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Question is what would happen with a change.
type Question struct {
	Change Change `json:"change,omitzero"`
	// Target is the Workload that the question is about, by its key; empty for none.
	Target string `json:"target,omitempty"`
	// OnlyTarget asks for the target alone: the run ends when it starts.
	OnlyTarget bool `json:"onlyTarget,omitempty"`
	// Ties is in how many orders ties between queues are broken, at least 1.
	Ties int `json:"ties,omitempty"`
	// Draws asks only when the Workloads that wait start for the first time, once for
	// each draw, within Horizon of virtual time. Waiting are those that are asked for, by
	// key; empty for all. Of the other fields only Submitted and Unattended are used.
	Draws   []Draw        `json:"draws,omitempty"`
	Horizon time.Duration `json:"horizon,omitempty"`
	Waiting []string      `json:"waiting,omitempty"`
	// Submitted are the Workloads of which Draws submits copies.
	Submitted []*kueue.Workload `json:"submitted,omitempty"`
	// Unattended reports that no user waits for the answer.
	Unattended bool `json:"-"`
}

// Report is what a change does, compared with the cluster as it is.
type Report struct {
	// Settled reports that the simulation came to its end. Otherwise the report is
	// about its beginning.
	Settled bool `json:"settled"`
	// Target is the Target of the question, if it starts; nil if it does not.
	Target *Effect `json:"target,omitempty"`
	// TargetTied reports that a tie decides whether the target starts.
	TargetTied bool `json:"targetTied,omitempty"`
	// Started wait now and have quota at the end. Preempted have quota now and are
	// preempted; Evicted lose it for another reason. By time, then by Workload.
	Started   []Effect `json:"started,omitempty"`
	Preempted []Effect `json:"preempted,omitempty"`
	Evicted   []Effect `json:"evicted,omitempty"`
	// Missed start without the change, and not with it.
	Missed []Effect `json:"missed,omitempty"`
	// Exceeding wait for more than their queue can ever have, with the change and
	// not without it, by key. Those of a queue that is not active without it are left
	// out.
	Exceeding []string `json:"exceeding,omitempty"`
	// Queues are by name of the ClusterQueue.
	Queues map[string]QueueChange `json:"queues,omitempty"`
	// UnknownGates are feature gates of the cluster that the simulating version of
	// Kueue does not have, sorted.
	UnknownGates []string `json:"unknownGates,omitempty"`
	// Starts is the answer to Question.Draws, by key of the Workload; nothing else is
	// set then.
	Starts map[string]*Start `json:"starts,omitempty"`
	// Cut reports that there was no time to simulate draws to the end: it is not known when
	// Workloads without a start would start.
	Cut bool `json:"cut,omitempty"`
}

// Effect is what happens to a Workload.
type Effect struct {
	Workload     string                         `json:"workload"`
	ClusterQueue string                         `json:"clusterQueue"`
	After        time.Duration                  `json:"after,omitempty"` // of virtual time
	Usage        quota.FlavorResourceQuantities `json:"usage,omitempty"`
	By           string                         `json:"by,omitempty"`     // Preempted: the preemptor
	Reason       string                         `json:"reason,omitempty"` // Preempted, Evicted: Kueue's
	Anyway       bool                           `json:"anyway,omitempty"` // without the change too
	Tied         bool                           `json:"tied,omitempty"`   // in some orders of ties only
}

// QueueChange is the usage of a ClusterQueue at the end: without and with the
// change.
type QueueChange struct {
	Before Queue `json:"before"`
	After  Queue `json:"after"`
}

// Compare returns what changed between the outcomes without a change and those with
// it, each of the same orders of ties.
func Compare(q *Question, before, after []*Outcome) *Report {
	r := &Report{Settled: true, Queues: map[string]QueueChange{}}
	for _, o := range slices.Concat(before, after) {
		r.Settled = r.Settled && o.Settled
	}
	started := effects(after, Started)
	r.Started = compared(started, effects(before, Started))
	r.Missed = missing(effects(before, Started), started)
	r.Preempted = compared(effects(after, Preempted), effects(before, Preempted))
	r.Evicted = compared(effects(after, Evicted), effects(before, Evicted))
	if q.Target != "" {
		if i := slices.IndexFunc(r.Started, func(e Effect) bool { return e.Workload == q.Target }); i >= 0 {
			r.Target, r.TargetTied = &r.Started[i], r.Started[i].Tied
		}
	}
	was, is := before[0], after[0]
	for name := range is.Queues {
		r.Queues[name] = QueueChange{Before: was.Queues[name], After: is.Queues[name]}
	}
	for name := range was.Queues {
		if _, remains := is.Queues[name]; !remains {
			r.Queues[name] = QueueChange{Before: was.Queues[name]}
		}
	}
	for key := range is.Exceeding {
		if !was.Exceeding[key] && !was.Untried[key] {
			r.Exceeding = append(r.Exceeding, key)
		}
	}
	slices.Sort(r.Exceeding)
	return r
}

// effects returns the effects of one kind, by Workload. Those that only some of the
// outcomes have are tied.
func effects(outcomes []*Outcome, kind EventKind) map[string]Effect {
	all, seen := map[string]Effect{}, map[string]int{}
	for _, o := range outcomes {
		of := map[string]Effect{}
		for _, e := range o.Events {
			if e.Kind != kind || e.Again || e.Lost {
				continue
			}
			if _, twice := of[e.Workload]; !twice {
				of[e.Workload] = Effect{Workload: e.Workload, ClusterQueue: e.ClusterQueue, After: e.After, Usage: e.Usage, By: e.By, Reason: e.Reason}
			}
		}
		for key, e := range of {
			if seen[key]++; seen[key] == 1 {
				all[key] = e
			}
		}
	}
	for key, e := range all {
		e.Tied = seen[key] < len(outcomes)
		all[key] = e
	}
	return all
}

func sorted(all map[string]Effect) []Effect {
	return slices.SortedFunc(maps.Values(all), func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.After, b.After), strings.Compare(a.Workload, b.Workload))
	})
}

// compared marks the effects that occur without the change too.
func compared(with, without map[string]Effect) []Effect {
	for key, e := range with {
		_, e.Anyway = without[key]
		with[key] = e
	}
	return sorted(with)
}

// missing returns the effects that do not occur with the change.
func missing(without, with map[string]Effect) []Effect {
	all := maps.Clone(without)
	for key := range with {
		delete(all, key)
	}
	return sorted(all)
}

// Replay is a question about a snapshot that was answered unexpectedly, with the
// names of objects replaced: kuota simulate answers it again.
type Replay struct {
	ID         string    `json:"id,omitempty"`
	Constraint string    `json:"constraint,omitempty"` // that package explain named
	Question   *Question `json:"question,omitempty"`
	*Snapshot
}

// Write writes a replay as compressed JSON.
func (r *Replay) Write(to io.Writer) error {
	z := gzip.NewWriter(to)
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return err
	}
	return z.Close()
}

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
