package allocations

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
)

// QueueActivity is the current tasks of a team.
type QueueActivity struct {
	Running []Task // those that use quota; named only for users who may see them
	Waiting int
}

// QueueActivity returns the tasks that holding or resuming a team's queue
// affects, for users who may update allocations.
func (s *Service) QueueActivity(ctx context.Context, user governance.User, name string) (QueueActivity, error) {
	if err := access.Require(ctx, user, s.Access.MayUpdateAllocations, "hold queue"); err != nil {
		return QueueActivity{}, err
	}
	allocation, err := s.Find(ctx, user, name)
	if err != nil {
		return QueueActivity{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return QueueActivity{}, err
	}
	tasks, err := s.tasksOf(ctx, user, reader, &allocation)
	if err != nil {
		return QueueActivity{}, err
	}
	activity := QueueActivity{Waiting: tasks.waiting}
	for _, h := range tasks.admitted {
		activity.Running = append(activity.Running, h.task)
	}
	return activity, nil
}
