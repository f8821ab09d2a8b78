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
	if next.Elastic() { // the larger slice is counted whole
		for _, h := range t.holds {
			for cell, amount := range h.Holds {
				if q := c.Queues[h.Queue]; q != nil {
					q.Used[cell] -= amount
				}
			}
		}
	}
	verdict := v.explain(question(next), c)
	verdict.Changes = slices.DeleteFunc(verdict.Changes, func(c explain.Change) bool {
		// A part comes whole or not at all, and fewer pods than it has are not more.
		return c.Kind == explain.FewerPods && (!next.Elastic() || c.Pods <= t.Size.Now)
	})
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
