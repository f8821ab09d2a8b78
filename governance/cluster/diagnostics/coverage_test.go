package diagnostics

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fakeReader is a reader with these objects.
type fakeReader struct {
	client.Reader
	queues []kueue.ClusterQueue
	nodes  []corev1.Node
	tasks  []kueue.Workload
}

func (r fakeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *kueue.ClusterQueueList:
		list.Items = r.queues
	case *corev1.NodeList:
		list.Items = r.nodes
	case *kueue.WorkloadList:
		list.Items = r.tasks
	}
	return nil
}

func TestResourceCoverage(t *testing.T) {
	one := resource.MustParse("1")
	node := corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": one, "pods": one, "nvidia.com/mig-1g.5gb": one, "aws.amazon.com/neuron": one, "hugepages-2Mi": {}}}}
	task := func(finished metav1.ConditionStatus) kueue.Workload {
		return kueue.Workload{
			Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/nic": one, "cpu": one}}},
			}}}}}},
			Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadFinished, Status: finished}}},
		}
	}
	in := fakeReader{nodes: []corev1.Node{node}, tasks: []kueue.Workload{task(metav1.ConditionFalse), task(metav1.ConditionTrue)}}
	covered, uncovered, err := ResourceCoverage(t.Context(), in)
	if err != nil || len(covered)+len(uncovered) > 0 {
		t.Errorf("without a ClusterQueue: %v, %v, %v", covered, uncovered, err)
	}
	in.queues = []kueue.ClusterQueue{
		{Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"memory", "cpu"}}, {CoveredResources: []corev1.ResourceName{"aws.amazon.com/neurondevice"}}}}},
		{Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}}}}},
	}
	covered, uncovered, err = ResourceCoverage(t.Context(), in)
	if err != nil || !slices.Equal(covered, []string{"aws.amazon.com/neurondevice", "cpu", "memory"}) || !slices.Equal(uncovered, []UncoveredResource{{"example.com/nic", 1}, {"nvidia.com/mig-1g.5gb", 0}}) {
		t.Errorf("got %v, %v, %v", covered, uncovered, err)
	}
}
