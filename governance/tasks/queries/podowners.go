package queries

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// ownersFreshness is how long the owners of pods are cached. All readers share the
// cache, since it is computed for all tasks.
const ownersFreshness = 5 * time.Second

// Owner is the task that a pod belongs to, for one viewer.
type Owner struct {
	// Hidden reports that the viewer may not see the task: all other fields are empty.
	Hidden       bool
	Team         string // that the viewer sees; empty for none
	Task         tasks.Address
	Accelerators resources.Amount // used by the task, of all kinds; each partition counts as one
	AdmittedAt   time.Time        // zero for a task that Kueue counts no quota for
}

// podOwnersCache maps pods that have not ended to tasks that use quota, or run
// without Kueue.
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

// devices returns the number of accelerators that a task uses.
func devices(t *tasks.Task) (n resources.Amount) {
	for name, amount := range t.Usage {
		if name != catalog.CPU && name != catalog.Memory && name != catalog.Network && (catalog.IsQuotaResource(name) || catalog.LooksLikeAccelerator(name)) {
			n = n.Plus(amount)
		}
	}
	return n
}

// PodOwners returns a function from a pod to its owner; false for a pod of no task.
// Its answers are up to a few seconds old.
func (s *Service) PodOwners(ctx context.Context, scope access.Scope) (func(index.PodName) (Owner, bool), error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	pods := s.owners.get(v.index, v.index.Now())
	return func(name index.PodName) (Owner, bool) { return v.owner(pods[name]) }, nil
}

// owner returns a task as the viewer may see it; false for none.
func (v viewer) owner(t *tasks.Task) (Owner, bool) {
	switch {
	case t == nil:
		return Owner{}, false
	case !v.scope.Includes(t.Namespace):
		return Owner{Hidden: true}, true
	}
	return Owner{Team: v.team(t.Place()), Task: t.Address(), Accelerators: devices(t), AdmittedAt: t.AdmittedAt}, true
}
