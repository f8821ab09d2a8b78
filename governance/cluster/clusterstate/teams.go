package clusterstate

import (
	"context"
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Teams says which team a task belongs to: that of the ClusterQueue whose quota it uses
// or waits for. Several teams can share a namespace. It is immutable; its zero value has no
// teams.
type Teams struct {
	namespaces    map[string]string           // by team; empty until its allocation has one
	in            map[string][]string         // teams by that namespace
	clusterQueues map[string]string           // team by ClusterQueue; empty for one of no team
	localQueues   map[client.ObjectKey]string // ClusterQueue by LocalQueue
	uids          map[string]types.UID        // of allocations, by team
}

// ReadTeams reads the teams from the caches.
func ReadTeams(ctx context.Context, reader client.Reader) (Teams, error) {
	allocations, err := cluster.All[v1alpha1.ComputeAllocation](ctx, reader)
	if err != nil {
		return Teams{}, err
	}
	clusterQueues, err := cluster.All[kueue.ClusterQueue](ctx, reader)
	if err != nil {
		return Teams{}, err
	}
	localQueues, err := cluster.All[kueue.LocalQueue](ctx, reader)
	if err != nil {
		return Teams{}, err
	}
	return NewTeams(allocations, clusterQueues, localQueues), nil
}

// NewTeams returns the teams of these allocations. A namespace is that of the status,
// which the controller writes, and a ClusterQueue belongs to the team of its label unless
// Kuota only shows it. Labels of namespaces and LocalQueues are not trusted: a member may
// have set them.
func NewTeams(allocations []*v1alpha1.ComputeAllocation, clusterQueues []*kueue.ClusterQueue, localQueues []*kueue.LocalQueue) Teams {
	t := Teams{
		namespaces: make(map[string]string, len(allocations)), in: make(map[string][]string, len(allocations)),
		clusterQueues: make(map[string]string, len(clusterQueues)), localQueues: make(map[client.ObjectKey]string, len(localQueues)),
		uids: make(map[string]types.UID, len(allocations)),
	}
	observed := map[string]string{}
	for _, a := range allocations {
		t.namespaces[a.Name], t.uids[a.Name] = a.Status.Namespace, a.UID
		if a.Status.Namespace != "" {
			t.in[a.Status.Namespace] = append(t.in[a.Status.Namespace], a.Name)
		}
		if a.Spec.Observed() {
			observed[a.Spec.ClusterQueueName] = a.Name
		}
	}
	for _, o := range clusterQueues {
		team := o.Labels[desired.LabelTeam]
		if _, exists := t.namespaces[team]; !exists {
			team = observed[o.Name]
		}
		t.clusterQueues[o.Name] = team
	}
	for _, q := range localQueues {
		t.localQueues[client.ObjectKeyFromObject(q)] = string(q.Spec.ClusterQueue)
	}
	return t
}

// Of returns the team of a task; empty for none. A task whose ClusterQueue is unknown
// belongs to the team of its namespace, if that has exactly one.
func (t Teams) Of(p tasks.Place) string {
	name := p.ClusterQueue
	if name == "" {
		name = t.localQueues[client.ObjectKey{Namespace: p.Namespace, Name: p.LocalQueue}]
	}
	if team, exists := t.clusterQueues[name]; exists {
		return team
	}
	return t.only(p.Namespace)
}

// only returns the team of a namespace that has exactly one.
func (t Teams) only(namespace string) string {
	if in := t.in[namespace]; len(in) == 1 {
		return in[0]
	}
	return ""
}

// OfClusterQueue returns the team of a ClusterQueue; empty for none.
func (t Teams) OfClusterQueue(name string) string { return t.clusterQueues[name] }

// UID returns the UID of the allocation of a team; empty for none.
func (t Teams) UID(team string) types.UID { return t.uids[team] }

// OfUID returns the team whose allocation has a UID; empty for none.
func (t Teams) OfUID(uid types.UID) string {
	for team, of := range t.uids {
		if of == uid && uid != "" {
			return team
		}
	}
	return ""
}

// In returns the teams of a namespace.
func (t Teams) In(namespace string) []string { return t.in[namespace] }

// Namespace returns the namespace of a team; empty until it has one.
func (t Teams) Namespace(team string) string { return t.namespaces[team] }

// Names returns the names of all teams, sorted.
func (t Teams) Names() []string { return slices.Sorted(maps.Keys(t.namespaces)) }

// Namespaces returns the namespaces of all teams, sorted.
func (t Teams) Namespaces() []string { return slices.Sorted(maps.Keys(t.in)) }

// AdoptionInput returns the input of a plan to adopt ClusterQueues, without Kueue's
// configuration.
func AdoptionInput(ctx context.Context, reader client.Reader, naming desired.Naming) (adoption.Input, error) {
	in := adoption.Input{Naming: naming}
	var (
		queues      kueue.ClusterQueueList
		locals      kueue.LocalQueueList
		cohorts     kueue.CohortList
		flavors     kueue.ResourceFlavorList
		classes     kueue.WorkloadPriorityClassList
		nodes       corev1.NodeList
		allocations v1alpha1.ComputeAllocationList
		departments v1alpha1.DepartmentList
	)
	if err := cluster.List(ctx, reader, &queues, &locals, &cohorts, &flavors, &classes, &nodes, &allocations, &departments); err != nil {
		return in, err
	}
	policy, err := Policy(ctx, reader)
	if err != nil {
		return in, err
	}
	in.ClusterQueues, in.LocalQueues, in.Cohorts, in.Flavors, in.PriorityClasses = queues.Items, locals.Items, cohorts.Items, flavors.Items, classes.Items
	in.Nodes, in.Allocations, in.Departments, in.Policy = nodes.Items, allocations.Items, departments.Items, policy
	return in, nil
}
