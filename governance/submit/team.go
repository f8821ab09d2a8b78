package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Team is where a team's tasks go, and what they may ask for.
type Team struct {
	Name, DisplayName string
	Namespace, Queue  string      // the queue is a LocalQueue
	Pools             []QueuePool // as its queue prefers them
	Classes           []PriorityClass
	// Kinds have a manifest here, and Kueue manages them. Where Kueue's
	// configuration is not known, that is Job alone.
	Kinds        []Kind
	KindsKnown   bool
	MissingKinds map[Kind]bool // of Kinds, that the API server does not have
	MaySubmit    bool          // whether the reader may make jobs there
}

// Class is a priority class, by the object that tasks name.
type PriorityClass = explain.PriorityClass

// Pool is a pool of a team's queue.
type QueuePool struct {
	catalog.Pool
	// Selects are the labels that lead a pod there, and Tolerations those that it
	// needs beside what its flavor adds.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	Nodes        []quota.Resources // what each of its nodes has for pods, ready or not
}

// Team is a team that user sees: whose tasks they may list. Any other does not
// exist for them.
func (s *Service) Team(ctx context.Context, user governance.User, name string) (Team, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return Team{}, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return Team{}, err
	}
	var a v1alpha1.ComputeAllocation
	err = cluster.Translate("find team", reader.Get(ctx, client.ObjectKey{Name: name}, &a))
	if err != nil && governance.KindOf(err) != governance.NotFound {
		return Team{}, err
	}
	if err != nil || !scope.Includes(a.Status.Namespace) {
		return Team{}, &governance.Error{Kind: governance.NotFound, Op: "find team", Message: fmt.Sprintf("There is no team %s, or you may not see it.", name)}
	}
	t := Team{Name: a.Name, DisplayName: a.Spec.DisplayName, Namespace: a.Status.Namespace, Queue: a.Status.LocalQueue}
	if t.Queue == "" {
		t.Queue = s.Naming.LocalQueue(a.Name)
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return Team{}, err
	}
	t.Kinds, t.KindsKnown = kindsOf(policy)
	t.MissingKinds = missing(t.Kinds, s.Cluster.RESTMapping)
	if t.Classes, err = queries.AllowedPriorityClasses(ctx, reader, policy); err != nil {
		return Team{}, err
	}
	slices.SortStableFunc(t.Classes, func(a, b PriorityClass) int { return cmp.Compare(b.Priority, a.Priority) }) // the highest first
	if t.Pools, err = s.pools(ctx, reader, &a); err != nil {
		return Team{}, err
	}
	if s.Cluster.ReadOnlyReason() == "" && slices.Contains(t.Kinds, Job) {
		t.MaySubmit, err = s.Access.MaySubmit(ctx, user, t.Namespace)
	}
	return t, err
}

// pools are those of a team's ClusterQueue, as it is now.
func (s *Service) pools(ctx context.Context, reader client.Reader, a *v1alpha1.ComputeAllocation) ([]QueuePool, error) {
	var queue kueue.ClusterQueue
	name := a.Status.ClusterQueue
	if name == "" {
		name = s.Naming.ClusterQueue(a.Name)
	}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &queue); err != nil {
		return nil, client.IgnoreNotFound(cluster.Translate("read queue", err))
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return nil, err
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list nodes", err)
	}
	var pools []QueuePool
	for i := range queue.Spec.ResourceGroups {
		for _, of := range queue.Spec.ResourceGroups[i].Flavors {
			var flavor kueue.ResourceFlavor
			switch err := reader.Get(ctx, client.ObjectKey{Name: string(of.Name)}, &flavor); {
			case client.IgnoreNotFound(err) != nil:
				return nil, cluster.Translate("read flavor", err)
			case err != nil:
				continue // the queue takes nothing while it is missing
			}
			pool, ok := types.Find(flavor.Name)
			if !ok {
				pool = catalog.Pool{Name: flavor.Name, Instance: catalog.Instance{Type: flavor.Name}}
			}
			pools = append(pools, QueuePool{
				Pool: pool, NodeSelector: flavor.Spec.NodeLabels, Tolerations: tolerations(&flavor.Spec), Nodes: sizes(nodes.Items, flavor.Spec.NodeLabels),
			})
		}
	}
	return pools, nil
}

// sizes are what nodes with these labels have for pods, of what quota counts. A node that reports
// nothing yet tells nothing.
func sizes(nodes []corev1.Node, with map[string]string) (sizes []quota.Resources) {
	selector := labels.SelectorFromSet(with)
	for i := range nodes {
		if !selector.Matches(labels.Set(nodes[i].Labels)) {
			continue
		}
		size := quota.Resources{}
		for name, amount := range nodes[i].Status.Allocatable {
			if catalog.IsQuotaResource(string(name)) {
				size[string(name)] = quota.ResourceValue(string(name), amount)
			}
		}
		if size[catalog.CPU] > 0 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// tolerations are those that a pod must bring for a flavor: Kueue adds the
// flavor's own.
func tolerations(flavor *kueue.ResourceFlavorSpec) (needed []corev1.Toleration) {
	for i := range flavor.NodeTaints {
		taint := &flavor.NodeTaints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(flavor.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			continue
		}
		t := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
		if taint.Value != "" {
			t.Operator, t.Value = corev1.TolerationOpEqual, taint.Value
		}
		needed = append(needed, t)
	}
	return needed
}

func tolerates(t corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Key != "" && t.Value == taint.Value
}
