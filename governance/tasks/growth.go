package tasks

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"
)

// more says why a task that runs does not get what it waits for: see next.
func (v viewer) more(ctx context.Context, t, next *Task) (*explain.Verdict, error) {
	c, err := v.surroundings(ctx, next)
	if err != nil {
		return nil, err
	}
	c.Admitted = slices.DeleteFunc(c.Admitted, func(h *explain.AdmittedWorkload) bool { return h.UID == t.UID && h.Namespace == t.Namespace })
	q := question(next)
	if next.Elastic() { // the larger slice is counted whole
		q.ReplacedUsage = quota.FlavorResourceQuantities{}
		for _, h := range t.AdmittedWorkloads {
			for cell, amount := range h.Usage {
				q.ReplacedUsage[cell] += amount
				if queue := c.Queues[h.Queue]; queue != nil {
					queue.Usage[cell] -= amount
				}
			}
		}
	}
	if t.PriorityClass == "" { // Kueue takes no class for one that got its quota without
		c.PriorityClasses = nil
	}
	verdict := v.explain(q, c)
	verdict.Changes = slices.DeleteFunc(verdict.Changes, func(c explain.Change) bool {
		// A part comes whole or not at all, and fewer pods than it has are not more.
		return c.Kind == explain.FewerPods && (!next.Elastic() || c.Pods <= t.Size.Admitted)
	})
	return verdict, nil
}

// next is what a task that holds quota waits for, as a task by itself: the newest
// slice of an elastic job, or the first in line of its Workloads. nil where none
// waits.
func (t *Task) next() *Task {
	var first *part
	for _, w := range t.Parts { // the newest first
		if p := readPart(w); p.state.Waiting() && (first == nil || p.priority > first.priority || p.priority == first.priority && !t.Elastic()) {
			first = &p
		}
	}
	if first == nil {
		return nil
	}
	next := &Task{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Queue: t.Queue, PriorityClass: t.PriorityClass, Priority: first.priority, State: first.state, main: first.w}
	if first.told != nil {
		next.Reason, next.Message = first.told.Reason, firstLine(first.told.Message)
	}
	first.times(next, nil)
	return next
}
