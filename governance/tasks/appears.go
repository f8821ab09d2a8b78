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
	t := s.wait(ctx, Address{namespace, kind, name, uid}, func(t *Task) bool { return t != nil && !t.Bare })
	return t != nil
}

// Classed waits until Kueue has copied the class of a job into its Workload, the
// task is gone, or ctx ends.
func (s *Service) Classed(ctx context.Context, at Address, class string) {
	s.wait(ctx, at, func(t *Task) bool { return t == nil || t.Class == class })
}

func (s *Service) wait(ctx context.Context, at Address, is func(*Task) bool) *Task {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.index.wait(ctx, s.Cluster.Tasks.Listen(ctx), at, is)
}

// wait looks at a task, nil for none, at each change until it is as it should be
// or ctx ends. It returns what it saw last.
func (x *Index) wait(ctx context.Context, changed <-chan struct{}, at Address, is func(*Task) bool) *Task {
	for {
		t := x.Find(at.Namespace, at.Kind, at.Name, at.UID)
		if is(t) {
			return t
		}
		select {
		case <-ctx.Done():
			return t
		case <-changed:
		}
	}
}
