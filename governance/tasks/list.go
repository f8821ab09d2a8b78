package tasks

import (
	"cmp"
	"context"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/cluster"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Service answers the pages about tasks.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
}

// Item is a task with the team whose namespace it runs in; empty for none.
type Item struct {
	Task
	Team string
}

// List returns the tasks that user may see, those that have not ended first,
// the newest first among them.
func (s *Service) List(ctx context.Context, user governance.User) ([]Item, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return nil, err
	}
	teams, err := allocations.Teams(ctx, reader)
	if err != nil {
		return nil, err
	}
	var workloads kueue.WorkloadList
	if err := reader.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list tasks", err)
	}
	names, err := hiddenFrom(ctx, reader, scope, teams)
	if err != nil {
		return nil, err
	}
	items := make([]Item, 0, len(workloads.Items))
	for i := range workloads.Items {
		w := &workloads.Items[i]
		if !scope.Sees(w.Namespace) {
			continue
		}
		item := Item{Task: FromWorkload(w), Team: teams[w.Namespace]}
		item.Reason = names.redact(item.Reason)
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Item) int {
		ended := func(t Task) int {
			if t.Finished() {
				return 1
			}
			return 0
		}
		return cmp.Or(
			cmp.Compare(ended(a.Task), ended(b.Task)),
			b.Submitted.Compare(a.Submitted),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Workload, b.Workload),
		)
	})
	return items, nil
}
