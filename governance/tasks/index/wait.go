package index

import (
	"context"
	"strings"

	"kuota.dev/kuota/governance/tasks"
)

// Wait reads a task, as FindOrNew does, at each change until is accepts it or ctx ends,
// and returns it.
func (x *Index) Wait(ctx context.Context, changed <-chan struct{}, at tasks.Address, is func(t *tasks.Task, isNew bool) bool) *tasks.Task {
	for {
		t, isNew := x.FindOrNew(at)
		if is(t, isNew) {
			return t
		}
		select {
		case <-ctx.Done():
			return t
		case <-changed:
		}
	}
}

// FindOrNew returns a task as Find does. Without one, it reports whether a job of
// that address is too new to be a task without a Workload.
func (x *Index) FindOrNew(at tasks.Address) (*tasks.Task, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.find(at.Namespace, at.Kind, at.Name, at.UID)
	return t, t == nil && x.isNew(at)
}

func (x *Index) isNew(at tasks.Address) bool {
	for key := range x.rebuilding { // those of the last seconds
		if j := x.jobs[key]; j != nil && j.Namespace == at.Namespace && j.Name == at.Name && strings.EqualFold(j.kind, at.Kind) && (at.UID == "" || string(j.UID) == at.UID) {
			return true
		}
	}
	return false
}

// Arriving reports whether there are jobs with a queue that are too new to be tasks
// without a Workload.
func (x *Index) Arriving() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.rebuilding {
		if j := x.jobs[key]; j != nil && j.queue != "" && x.tasks[key] == nil {
			return true
		}
	}
	return false
}
