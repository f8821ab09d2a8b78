package queries

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
)

// Proposal is a task that nobody submitted yet.
type Proposal struct {
	Namespace, Queue string // its LocalQueue
	Priority         int32  // of its class
	PodSets          []explain.PodSet
}

// Hypothesis is how a task would fare that was submitted now.
type Hypothesis struct {
	// Verdict is Turn for one that fits, and Reclaims for one for which Kueue
	// would make room.
	Verdict    explain.Verdict
	Ahead      int  // tasks that would stand before it in its queue
	StrictFIFO bool // a task before it that does not fit would hold it up
}

// WouldStart says how a task would fare, by the same numbers as one that waits,
// for a user who sees its namespace. For everybody else there is no such queue.
// Names that are not for them are hidden as in Detail.
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
