package tasks

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks/explain"
)

// Supposed is where a task would stand if it waited in its queue with a
// priority, as of now.
type Supposed struct {
	Priority              int32
	Position, QueueLength int   // in its LocalQueue, from 1, with itself
	Ahead                 *Task // directly before it; nil where it would be the first
	// Outranked is by how many tasks that wait in the same queue.
	Outranked int
	// Preempts tells whether its queue stops a task for another of it that has a
	// higher priority.
	Preempts bool
	// Verdict is why it would not start; nil for a task that holds its quota, and
	// for one without a Workload, of which too little is known.
	Verdict *explain.Verdict
}

// Suppose is all about a task that user may see, and where it would stand with
// each of these priorities. A task that is stopped counts as one that waits.
func (s *Service) Suppose(ctx context.Context, user governance.User, at Address, priorities ...int32) (Detail, []Supposed, error) {
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
	supposed := make([]Supposed, len(priorities))
	for i, priority := range priorities {
		supposed[i] = v.index.suppose(d.Task, priority)
		supposed[i].Preempts = c.Queue != nil && !c.Queue.NeverWithinClusterQueue
		if d.State.UsesQuota() || d.NoWorkload {
			continue
		}
		q := question(d.Task)
		q.Priority, q.Deactivated = priority, false
		q.LoopHeld = false
		supposed[i].Verdict = v.explain(q, c)
	}
	return d, supposed, nil
}

// First is the task that stands first in a LocalQueue; nil where none waits.
// Its task must be one that the reader may see: a queue is of one namespace.
func (s *Service) Head(namespace, queue string) *Task {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if o := s.index.queues[queueKey{namespace, queue}]; o != nil {
		if list := o.list(); len(list) > 0 {
			return list[0]
		}
	}
	return nil
}

// Address is how a task is asked for. Without a UID it is the newest of that
// name.
type Address struct{ Namespace, Kind, Name, UID string }

// Address is the task's own, which no other ever has.
func (t *Task) Address() Address { return Address{t.Namespace, t.Kind, t.Name, t.UID} }

func (x *Index) suppose(t *Task, priority int32) Supposed {
	raised := *t
	raised.Priority = priority
	supposed := Supposed{Priority: priority, Position: 1, QueueLength: 1}
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.queues[queueKey{t.Namespace, t.Queue}]
	if o == nil {
		return supposed
	}
	for _, other := range o.list() {
		if other.UID == t.UID {
			continue
		}
		supposed.QueueLength++
		if other.Priority > priority {
			supposed.Outranked++
		}
		if inQueue(other, &raised) < 0 {
			supposed.Position++
			supposed.Ahead = other
		}
	}
	return supposed
}
