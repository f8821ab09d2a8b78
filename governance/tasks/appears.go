package tasks

import "context"

// Known tells whether a task of that name is in the index, whoever asks: it is
// for telling somebody who may make one that the name is taken.
func (s *Service) Known(namespace, kind, name string) bool {
	return s.index.Find(namespace, kind, name, "") != nil
}

// Appears waits until Kueue has made the Workload of a job, some moments after
// the job, or ctx ends. It tells whether its task can be looked at then.
func (s *Service) Appears(ctx context.Context, namespace, kind, name, uid string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := s.Cluster.Tasks.Listen(ctx)
	for {
		t := s.index.Find(namespace, kind, name, uid)
		if t != nil && !t.Bare {
			return true
		}
		select {
		case <-ctx.Done():
			return t != nil
		case <-changed:
		}
	}
}
