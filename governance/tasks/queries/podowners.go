package queries

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// ownersFor is how long it stays known whose pods are whose. Readers share it,
// since it is looked up for all tasks.
const ownersFreshness = 5 * time.Second

// Owner is the task that a pod belongs to, as somebody sees it.
type Owner struct {
	// Hidden says that they may not see it: all else is empty then.
	Hidden       bool
	Team         string // whose namespace it is in; empty for none
	Task         tasks.Address
	Accelerators int64     // that the task holds, of all its kinds, parts of one each as one
	AdmittedAt   time.Time // zero for a task that Kueue counts no quota for
}

// owners are the tasks that hold something, or run beside Kueue, by their pods that
// have not ended.
type podOwnersCache struct {
	mu   sync.Mutex
	at   time.Time
	pods map[index.PodName]*tasks.Task
}

func (o *podOwnersCache) get(x *index.Index, now time.Time) map[index.PodName]*tasks.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pods == nil || now.Sub(o.at) >= ownersFreshness {
		o.pods, o.at = x.PodOwners(), now
	}
	return o.pods
}

// accelerators is how many devices a task holds.
func devices(t *tasks.Task) (n int64) {
	for name, amount := range t.Usage {
		if name != catalog.CPU && name != catalog.Memory && name != catalog.Network && (catalog.IsQuotaResource(name) || catalog.LooksLikeAccelerator(name)) {
			n += amount
		}
	}
	return n
}

// PodOwners tells whose a pod is, to everybody with this scope; false for a pod of
// no task. What it tells is a few seconds old.
func (s *Service) PodOwners(ctx context.Context, scope access.Scope) (func(index.PodName) (Owner, bool), error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	pods := s.owners.get(v.index, v.index.Now())
	return func(name index.PodName) (Owner, bool) { return v.owner(pods[name]) }, nil
}

// owner is a task as somebody sees it; false for none.
func (v viewer) owner(t *tasks.Task) (Owner, bool) {
	switch {
	case t == nil:
		return Owner{}, false
	case !v.scope.Includes(t.Namespace):
		return Owner{Hidden: true}, true
	}
	return Owner{Team: v.teams[t.Namespace], Task: t.Address(), Accelerators: devices(t), AdmittedAt: t.AdmittedAt}, true
}
