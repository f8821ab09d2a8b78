package tasks

import (
	"cmp"
	"context"
	"slices"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Service answers the pages about tasks.
type Service struct {
	Cluster *cluster.Cluster
}

// Item is a task with the team whose namespace it runs in; empty for none.
type Item struct {
	Task
	Team string
}

// List returns the tasks of the cluster, those that have not ended first, the
// newest first among them.
func (s *Service) List(ctx context.Context) ([]Item, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy, client.MatchingLabels{desired.LabelGoverned: "true"}); err != nil {
		return nil, cluster.Translate("list namespaces", err)
	}
	teams := make(map[string]string, len(namespaces.Items))
	for i := range namespaces.Items {
		teams[namespaces.Items[i].Name] = namespaces.Items[i].Labels[desired.LabelTeam]
	}
	var workloads kueue.WorkloadList
	if err := reader.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list tasks", err)
	}
	items := make([]Item, len(workloads.Items))
	for i := range workloads.Items {
		w := &workloads.Items[i]
		items[i] = Item{Task: FromWorkload(w), Team: teams[w.Namespace]}
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
