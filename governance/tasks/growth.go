package tasks

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance/tasks/explain"
)

// more says why a task that runs gets no more; nil where it wants no more.
func (v viewer) more(ctx context.Context, t *Task) (*explain.Verdict, error) {
	next := t.next()
	if next == nil {
		return nil, nil
	}
	c, err := v.surroundings(ctx, next)
	if err != nil {
		return nil, err
	}
	c.Holders = slices.DeleteFunc(c.Holders, func(h *explain.Holder) bool { return h.UID == t.UID && h.Namespace == t.Namespace })
	elastic := next.main.Annotations[sliceName] != ""
	if elastic { // the larger slice takes the place of the one that runs
		for _, h := range t.holds {
			for cell, amount := range h.Holds {
				if q := c.Queues[h.Queue]; q != nil {
					q.Used[cell] -= amount
				}
			}
		}
	}
	verdict := v.explain(question(next), c)
	if !elastic { // a part comes whole or not at all
		verdict.Changes = slices.DeleteFunc(verdict.Changes, func(c explain.Change) bool { return c.Kind == explain.FewerPods })
	}
	return verdict, nil
}

// next is what a task that holds quota waits for, as a task by itself: the larger
// slice of an elastic job, or the first in line of its Workloads that wait. nil
// where none does.
func (t *Task) next() *Task {
	var first *part
	for _, w := range t.Parts {
		if p := readPart(w); p.state.Waiting() && (first == nil || p.priority > first.priority) {
			first = &p
		}
	}
	if first == nil {
		return nil
	}
	next := &Task{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Queue: t.Queue, Priority: first.priority, State: first.state, main: first.w}
	if first.told != nil {
		next.Token = first.told.Reason
	}
	return next
}
