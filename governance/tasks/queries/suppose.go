package queries

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// Suppose returns the page of a task that user may see, and its position with each
// of these priorities. A stopped task counts as one that waits.
func (s *Service) Suppose(ctx context.Context, user governance.User, at tasks.Address, priorities ...int32) (Detail, []index.Supposed, error) {
	d, err := s.Detail(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	if err != nil || len(priorities) == 0 {
		return d, nil, err
	}
	v, err := s.view(ctx, user)
	if err != nil {
		return Detail{}, nil, err
	}
	c, err := v.surroundings(ctx, d.Task)
	if err != nil {
		return Detail{}, nil, err
	}
	c.Behind = false // the position that each priority gives says it
	supposed := make([]index.Supposed, len(priorities))
	for i, priority := range priorities {
		supposed[i] = v.index.Suppose(d.Task, priority)
		supposed[i].Preempts = c.Queue != nil && !c.Queue.NeverWithinClusterQueue
		if d.State.UsesQuota() || d.NoWorkload {
			continue
		}
		q := explainInput(d.Task)
		q.Priority, q.Deactivated, q.TimedOut = priority, false, false
		q.LoopHeld = false
		supposed[i].Verdict = v.explain(q, c)
	}
	return d, supposed, nil
}
