package tasks

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/catalog"
)

// ownersFor is how long it stays known whose pods are whose. Readers share it,
// since it is looked up for all tasks.
const ownersFor = 5 * time.Second

// PodName names a pod.
type PodName struct{ Namespace, Name string }

// Owner is the task that a pod belongs to, as somebody sees it.
type Owner struct {
	// Hidden says that they may not see it: all else is empty then.
	Hidden       bool
	Team         string // whose namespace it is in; empty for none
	Task         Address
	Accelerators int64     // that the task holds, of all its kinds, parts of one each as one
	AdmittedAt   time.Time // zero for a task that Kueue counts no quota for
}

// owners are the tasks that hold something, or run beside Kueue, by their pods that
// have not ended.
type owners struct {
	mu   sync.Mutex
	at   time.Time
	pods map[PodName]*Task
}

func (o *owners) get(x *Index, now time.Time) map[PodName]*Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pods == nil || now.Sub(o.at) >= ownersFor {
		o.pods, o.at = x.podOwners(), now
	}
	return o.pods
}

func (x *Index) podOwners() map[PodName]*Task {
	x.mu.Lock()
	var holding []*Task
	for _, t := range x.tasks {
		if t.State.UsesQuota() || t.NoWorkload && !t.State.Finished() {
			holding = append(holding, t)
		}
	}
	x.mu.Unlock()
	found := map[PodName]*Task{}
	for _, t := range holding { // nobody waits until all are done
		x.mu.Lock()
		for _, p := range x.podsOf(t) {
			if !p.ended() {
				found[PodName{p.Namespace, p.Name}] = t
			}
		}
		x.mu.Unlock()
	}
	return found
}

// accelerators is how many devices a task holds.
func (t *Task) accelerators() (n int64) {
	for name, amount := range t.Usage {
		if name != catalog.CPU && name != catalog.Memory && name != catalog.Network && (catalog.IsQuotaResource(name) || catalog.LooksLikeAccelerator(name)) {
			n += amount
		}
	}
	return n
}

// PodOwners tells whose a pod is, to everybody with this scope; false for a pod of
// no task. What it tells is a few seconds old.
func (s *Service) PodOwners(ctx context.Context, scope access.Scope) (func(PodName) (Owner, bool), error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	pods := s.owners.get(v.index, time.Now())
	return func(name PodName) (Owner, bool) { return v.owner(pods[name]) }, nil
}

// owner is a task as somebody sees it; false for none.
func (v viewer) owner(t *Task) (Owner, bool) {
	switch {
	case t == nil:
		return Owner{}, false
	case !v.scope.Includes(t.Namespace):
		return Owner{Hidden: true}, true
	}
	return Owner{Team: v.teams[t.Namespace], Task: t.Address(), Accelerators: t.accelerators(), AdmittedAt: t.AdmittedAt}, true
}
