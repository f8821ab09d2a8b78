package taskstest

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Teams returns teams by pairs of a namespace and a name, each with a ClusterQueue
// NAME-queue.
func Teams(namespacesAndNames ...string) clusterstate.Teams {
	var allocations []v1alpha1.ComputeAllocation
	var queues []kueue.ClusterQueue
	for i := 0; i < len(namespacesAndNames); i += 2 {
		namespace, name := namespacesAndNames[i], namespacesAndNames[i+1]
		allocations = append(allocations, v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.ComputeAllocationStatus{Namespace: namespace}})
		queues = append(queues, kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name + "-queue", Labels: map[string]string{desired.LabelTeam: name}}})
	}
	return clusterstate.NewTeams(allocations, queues, nil)
}
