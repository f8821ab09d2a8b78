package queries

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
)

// Proposal is a task that is not submitted yet.
type Proposal struct {
	Namespace, Queue string // its LocalQueue
	Priority         int32  // of its class
	PodSets          []explain.PodSet
}

// Hypothesis is what would happen to a task that was submitted now.
type Hypothesis struct {
	// Verdict is PendingEvaluation for a task that fits, and Preempting for one
	// that Kueue would preempt others for.
	Verdict    explain.Verdict
	Ahead      int  // tasks before it in its queue
	StrictFIFO bool // a task before it that does not fit would block it
}

// WouldStart explains a task that is not submitted, by the same numbers as one that
// waits. The queue exists only for users who see its namespace. Names are redacted
// as in Detail.
func (s *Service) WouldStart(ctx context.Context, user governance.User, p Proposal) (Hypothesis, error) {
	v, err := s.view(ctx, user)
	if err != nil {
		return Hypothesis{}, err
	}
	if !v.scope.Includes(p.Namespace) {
		return Hypothesis{}, &governance.Error{Kind: governance.NotFound, Op: "try a task", Message: "Queue not found, or you do not have access."}
	}
	c, err := v.surroundings(ctx, &tasks.Task{Namespace: p.Namespace, Queue: p.Queue})
	if err != nil {
		return Hypothesis{}, err
	}
	return Hypothesis{
		Verdict:    *v.explain(explain.Task{Namespace: p.Namespace, Priority: p.Priority, PodSets: p.PodSets}, c),
		Ahead:      v.index.CountAhead(p.Namespace, p.Queue, p.Priority),
		StrictFIFO: c.Queue != nil && c.Queue.StrictFIFO,
	}, nil
}
