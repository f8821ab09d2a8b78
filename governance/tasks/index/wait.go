package index

import (
	"context"
	"strings"

	"kuota.dev/kuota/governance/tasks"
)

// wait looks at a task, nil for none, at each change until it is as it should be
// or ctx ends. It returns what it saw last.
func (x *Index) Wait(ctx context.Context, changed <-chan struct{}, at tasks.Address, is func(*tasks.Task) bool) *tasks.Task {
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
func (x *Index) IsNew(at tasks.Address) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.rebuilding { // those of the last seconds
		if j := x.jobs[key]; j != nil && j.Namespace == at.Namespace && j.Name == at.Name && strings.EqualFold(j.kind, at.Kind) && (at.UID == "" || string(j.UID) == at.UID) {
			return true
		}
	}
	return false
}
