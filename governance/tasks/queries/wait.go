package queries

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// WaitForTask waits until a job is a task, shortly after it was created, or ctx
// ends. It reports whether the task exists then.
func (s *Service) WaitForTask(ctx context.Context, namespace, kind, name, uid string) bool {
	t := s.wait(ctx, tasks.Address{Namespace: namespace, Kind: kind, Name: name, UID: uid}, func(t *tasks.Task) bool { return t != nil })
	return t != nil
}

// findOrWait returns a task. Shortly after its job was created, it waits until
// Kueue has created the Workload, or the job is a task without one.
func (s *Service) findOrWait(ctx context.Context, x *index.Index, at tasks.Address) *tasks.Task {
	if t, isNew := x.FindOrNew(at); !isNew {
		return t
	}
	ctx, cancel := context.WithTimeout(ctx, index.WorkloadGrace+time.Second)
	defer cancel()
	return x.Wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, func(_ *tasks.Task, isNew bool) bool { return !isNew })
}

// WaitForPriorityClass waits until Kueue has copied the priority class of a job
// into its Workload, the task is deleted, or ctx ends.
func (s *Service) WaitForPriorityClass(ctx context.Context, at tasks.Address, class string) {
	s.wait(ctx, at, func(t *tasks.Task) bool { return t == nil || t.PriorityClass == class })
}

func (s *Service) wait(ctx context.Context, at tasks.Address, is func(*tasks.Task) bool) *tasks.Task {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.Index.Wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, func(t *tasks.Task, _ bool) bool { return is(t) })
}
