package tasks

import (
	"context"
	"strings"
	"time"
)

// Known tells whether a task of that name is in the index, whoever asks: it is
// for telling somebody who may make one that the name is taken.
func (s *Service) Exists(namespace, kind, name string) bool {
	return s.index.Find(namespace, kind, name, "") != nil
}

// Appears waits until a job is a task, some moments after it was made, or ctx
// ends. It tells whether it can be looked at then.
func (s *Service) WaitForTask(ctx context.Context, namespace, kind, name, uid string) bool {
	t := s.wait(ctx, Address{namespace, kind, name, uid}, func(t *Task) bool { return t != nil })
	return t != nil
}

// found is a task. Where its job was made a moment ago, it waits until Kueue has
// made the Workload, or the job is a task without one.
func (s *Service) found(ctx context.Context, x *Index, at Address) *Task {
	if t := x.Find(at.Namespace, at.Kind, at.Name, at.UID); t != nil || !x.young(at) {
		return t
	}
	ctx, cancel := context.WithTimeout(ctx, grace+time.Second)
	defer cancel()
	return x.wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, func(t *Task) bool { return t != nil || !x.young(at) })
}

// Classed waits until Kueue has copied the class of a job into its Workload, the
// task is gone, or ctx ends.
func (s *Service) WaitForPriorityClass(ctx context.Context, at Address, class string) {
	s.wait(ctx, at, func(t *Task) bool { return t == nil || t.PriorityClass == class })
}

func (s *Service) wait(ctx context.Context, at Address, is func(*Task) bool) *Task {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.index.wait(ctx, s.Cluster.TaskChanges.Subscribe(ctx), at, is)
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

// young tells whether a job of that name is too young to be a task without a
// Workload.
func (x *Index) young(at Address) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.waits { // those of the last seconds
		if j := x.jobs[key]; j != nil && j.Namespace == at.Namespace && j.Name == at.Name && strings.EqualFold(j.kind, at.Kind) && (at.UID == "" || string(j.UID) == at.UID) {
			return true
		}
	}
	return false
}
