package simulate

import (
	"math"
	"slices"
	"time"
)

// RunTimes is how long Workloads run, by key: from a start, and those that have
// quota from the snapshot on. One without either does not end.
type RunTimes struct {
	Whole     map[string]time.Duration `json:"whole,omitempty"`
	Remaining map[string]time.Duration `json:"remaining,omitempty"`
}

// Draw is one possible future: how long Workloads run, and which are submitted later.
type Draw struct {
	RunTimes
	Submissions []Submission `json:"submissions,omitempty"`
}

// Submission is a Workload that is submitted later.
type Submission struct {
	Workload int           `json:"workload"` // index in Question.Submitted, which it is equal to
	After    time.Duration `json:"after"`    // from the time of the snapshot on
	RunTime  time.Duration `json:"runTime"`
}

// Start is when a Workload that waits starts for the first time.
type Start struct {
	// After has one duration for each draw that there was time for; NotStarted if the
	// Workload does not start within the horizon.
	After []time.Duration `json:"after"`
	// Exceeds reports that it requests more than its queue can ever have.
	Exceeds bool `json:"exceeds,omitempty"`
}

// NotStarted is the start of a Workload that does not start.
const NotStarted = time.Duration(math.MaxInt64)

// Starts returns the starts of some Workloads in the outcomes of several draws, by key.
// A Workload that starts in none is contained only if it exceeds its queue.
func Starts(waiting []string, outcomes []*Outcome) map[string]*Start {
	asked := make(map[string]bool, len(waiting))
	for _, key := range waiting {
		asked[key] = true
	}
	starts := map[string]*Start{}
	of := func(key string) *Start {
		s := starts[key]
		if s == nil {
			s = &Start{After: slices.Repeat([]time.Duration{NotStarted}, len(outcomes))}
			starts[key] = s
		}
		return s
	}
	for i, o := range outcomes {
		for _, e := range o.Events {
			if e.Kind == Started && !e.Again && asked[e.Workload] {
				s := of(e.Workload)
				s.After[i] = min(s.After[i], e.After)
			}
		}
		for key := range o.Exceeding {
			if asked[key] {
				of(key).Exceeds = true
			}
		}
	}
	return starts
}
