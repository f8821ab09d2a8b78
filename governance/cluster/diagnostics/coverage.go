package diagnostics

import (
	"context"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ResourceCoverage returns the resources that ClusterQueues cover, by name, and
// those that nodes have or unfinished tasks request and no ClusterQueue covers.
// Without a ClusterQueue it returns none. A resource whose name is a prefix of
// a covered one is not returned as uncovered, because Kueue excludes resources
// by prefix.
func ResourceCoverage(ctx context.Context, reader client.Reader) (covered []string, uncovered []UncoveredResource, err error) {
	var queues kueue.ClusterQueueList
	var nodes corev1.NodeList
	var workloads kueue.WorkloadList
	if err := cluster.List(ctx, reader, &queues, &nodes, &workloads); err != nil {
		return nil, nil, err
	}
	if len(queues.Items) == 0 {
		return nil, nil, nil
	}
	covers := map[string]bool{}
	for i := range queues.Items {
		for _, group := range queues.Items[i].Spec.ResourceGroups {
			for _, resource := range group.CoveredResources {
				covers[string(resource)] = true
			}
		}
	}
	covered = slices.Sorted(maps.Keys(covers))
	covers[pods] = true // Kueue counts pods only in ClusterQueues that cover them
	named := map[string]int{}
	for i := range nodes.Items {
		for resource, quantity := range nodes.Items[i].Status.Allocatable {
			if !quantity.IsZero() {
				named[string(resource)] += 0
			}
		}
	}
	for i := range workloads.Items {
		if w := &workloads.Items[i]; !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			for resource := range requestedResources(w) {
				named[resource]++
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(named)) {
		begins := func(name string) bool { return strings.HasPrefix(name, resource) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(covers)), begins) {
			uncovered = append(uncovered, UncoveredResource{Resource: resource, Tasks: named[resource]})
		}
	}
	return covered, uncovered, nil
}

// pods is the number of pods. Kueue adds it after it has excluded resources.
const pods = string(corev1.ResourcePods)

// requestedResources returns the resources that a task's pods request.
func requestedResources(w *kueue.Workload) map[string]bool {
	resources := map[string]bool{}
	for i := range w.Spec.PodSets {
		spec := &w.Spec.PodSets[i].Template.Spec
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for j := range containers {
				for _, list := range []corev1.ResourceList{containers[j].Resources.Requests, containers[j].Resources.Limits} {
					for resource, quantity := range list {
						if !quantity.IsZero() {
							resources[string(resource)] = true
						}
					}
				}
			}
		}
	}
	return resources
}
