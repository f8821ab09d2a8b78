package clusterstate

import (
	"context"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

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
	)
	if err := cluster.List(ctx, reader, &queues, &locals, &cohorts, &flavors, &classes, &nodes, &allocations); err != nil {
		return in, err
	}
	policy, err := Policy(ctx, reader)
	if err != nil {
		return in, err
	}
	in.ClusterQueues, in.LocalQueues, in.Cohorts, in.Flavors, in.PriorityClasses = queues.Items, locals.Items, cohorts.Items, flavors.Items, classes.Items
	in.Nodes, in.Allocations, in.Policy = nodes.Items, allocations.Items, policy
	return in, nil
}
