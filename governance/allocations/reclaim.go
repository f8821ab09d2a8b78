package allocations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/resources"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Reclaim is what a team could preempt of one resource of one pool after a
// change, and could not before.
type Reclaim struct {
	Pool, Resource string
	// Max is the amount that the team could reclaim with its own quota, whatever the
	// priority (reclaimWithinCohort: Any).
	Max resources.Amount
	// Borrow reports that the team may borrow more instead, and then preempt tasks of a
	// lower priority (borrowWithinCohort: LowerPriority). Max is 0 then.
	Borrow bool
	From   []Borrower // current borrowers, the largest first
}

// Borrower is a team whose tasks use more than its quota. Its name and its tasks
// are empty for users who may not see it.
type Borrower struct {
	Team     string
	Borrowed resources.Amount
	Tasks    []Task // that use the resource, in the order in which Kueue preempts them
}

// reclaims lists what a change lets a team preempt: where its quota rises, what
// others borrow; else, where its borrowing limit rises, what they borrow with a
// lower priority.
func (s *Service) reclaims(ctx context.Context, user governance.User, reader client.Reader, team string, changes []PoolChange, all []v1alpha1.ComputeAllocation, types catalog.Catalog) ([]Reclaim, error) {
	var found []Reclaim
	for _, change := range changes {
		for _, name := range change.names() {
			r := Reclaim{Pool: change.Pool, Resource: name, Max: change.After[name].Minus(change.Before[name])}
			if r.Max <= 0 {
				r.Max, r.Borrow = 0, borrowsMore(change, name)
			}
			if r.Max > 0 || r.Borrow {
				found = append(found, r)
			}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	named, err := s.Access.CanSee(ctx, user, "")
	if err != nil {
		return nil, err
	}
	byQueue, err := admittedByQueue(ctx, reader, named)
	if err != nil {
		return nil, err
	}
	for i := range all {
		other := &all[i]
		tasks := byQueue[desired.ClusterQueueName(other, s.Naming)]
		if other.Name == team || len(tasks) == 0 {
			continue
		}
		own, _ := quota.Effective(other, types)
		for j := range found {
			if borrower := borrowerOf(tasks, own, found[j].Pool, found[j].Resource); borrower.Borrowed > 0 {
				if named {
					borrower.Team = other.Name
				}
				found[j].From = append(found[j].From, borrower)
			}
		}
	}
	found = slices.DeleteFunc(found, func(r Reclaim) bool { return len(r.From) == 0 })
	for i := range found {
		r := &found[i]
		slices.SortFunc(r.From, func(a, b Borrower) int {
			return cmp.Or(cmp.Compare(b.Borrowed, a.Borrowed), strings.Compare(a.Team, b.Team))
		})
		var borrowed resources.Amount
		for _, b := range r.From {
			borrowed = borrowed.Plus(b.Borrowed)
		}
		r.Max = min(r.Max, borrowed)
	}
	return found, nil
}

// borrowsMore reports whether a change lets the team borrow more of a resource.
// A nil limit is without limit where there is quota.
func borrowsMore(change PoolChange, resource string) bool {
	before, after := change.BorrowingLimitBefore[resource], change.BorrowingLimitAfter[resource]
	switch {
	case change.After == nil, change.Before != nil && change.BorrowingLimitBefore == nil:
		return false
	case change.BorrowingLimitAfter == nil:
		return true
	}
	return after > before
}

// borrowerOf returns how much of a resource of a pool tasks use beyond the quota
// of their team.
func borrowerOf(tasks []admittedTask, own quota.Resolved, pool, resource string) (b Borrower) {
	for _, t := range tasks {
		if amount := t.usage[pool][resource]; amount > 0 {
			b.Borrowed = b.Borrowed.Plus(amount)
			b.Tasks = append(b.Tasks, t.task)
		}
	}
	for _, p := range own.Pools {
		if p.Name == pool {
			b.Borrowed = b.Borrowed.Minus(p.Nominal[resource])
		}
	}
	return b
}

// admittedByQueue returns the admitted tasks of each ClusterQueue, in the order in
// which Kueue preempts them.
func admittedByQueue(ctx context.Context, reader client.Reader, named bool) (map[string][]admittedTask, error) {
	var list kueue.WorkloadList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list tasks", err)
	}
	byQueue := map[string][]admittedTask{}
	for i := range list.Items {
		w := &list.Items[i]
		if w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		queue := string(w.Status.Admission.ClusterQueue)
		byQueue[queue] = append(byQueue[queue], admittedTaskOf(w, named))
	}
	for _, tasks := range byQueue {
		slices.SortFunc(tasks, byPreemptionOrder)
	}
	return byQueue, nil
}

// Reclaimable lists what a team's tasks use beyond the quota that its allocation
// has: other teams can reclaim it.
func (s *Service) Reclaimable(ctx context.Context, user governance.User, name string) ([]QuotaExcess, error) {
	allocation, err := s.Find(ctx, user, name)
	if err != nil {
		return nil, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return nil, err
	}
	tasks, err := s.tasksOf(ctx, user, reader, &allocation)
	if err != nil {
		return nil, err
	}
	resolved, _ := quota.Resolve(&allocation.Spec, types)
	return quotaExcess(tasks.admitted, resolved), nil
}
