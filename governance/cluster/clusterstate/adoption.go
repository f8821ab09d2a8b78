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
	for _, list := range []struct {
		of    client.ObjectList
		words string
	}{{&queues, "list ClusterQueues"}, {&locals, "list LocalQueues"}, {&cohorts, "list Cohorts"}, {&flavors, "list ResourceFlavors"}, {&classes, "list priority classes"}, {&nodes, "list nodes"}, {&allocations, "list allocations"}} {
		if err := reader.List(ctx, list.of, client.UnsafeDisableDeepCopy); err != nil {
			return in, cluster.Translate(list.words, err)
		}
	}
	policy, err := Policy(ctx, reader)
	if err != nil {
		return in, err
	}
	in.ClusterQueues, in.LocalQueues, in.Cohorts, in.Flavors, in.PriorityClasses = queues.Items, locals.Items, cohorts.Items, flavors.Items, classes.Items
	in.Nodes, in.Allocations, in.Policy = nodes.Items, allocations.Items, policy
	return in, nil
}
