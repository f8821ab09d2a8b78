package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// submit creates a Job of a team that requests one GPU of a g5.
func submit(t *testing.T, c *clustertest.Cluster, team, name string) {
	t.Helper()
	namespace := desired.DefaultNaming.Namespace(team)
	c.Apply(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: example.com/train:1
        resources: {requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}
`, name, namespace, desired.DefaultNaming.LocalQueue(team)))
	admitted(t, c, team, 1)
}

// admitted waits until a team's ClusterQueue has want admitted tasks.
func admitted(t *testing.T, c *clustertest.Cluster, team string, want int32) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
			return err
		}
		if queue.Status.AdmittedWorkloads != want {
			return fmt.Errorf("%d tasks are admitted, want %d", queue.Status.AdmittedWorkloads, want)
		}
		return nil
	})
}

// waitDeleted waits until an object does not exist.
func waitDeleted(t *testing.T, c *clustertest.Cluster, object client.Object) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%T %s still exists: %w", object, object.GetName(), err)
	})
}

func allocationNamed(team string) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}
}

func TestCreatedAgainAfterDeletion(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("again")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	create(t, c, team, spec)
	before := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	var namespace corev1.Namespace
	key := client.ObjectKey{Name: before.Status.Namespace}
	if err := c.Client.Get(t.Context(), key, &namespace); err != nil {
		t.Fatal(err)
	}
	uid := namespace.UID

	if err := c.Client.Delete(t.Context(), allocationNamed(team)); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, c, allocationNamed(team))
	waitDeleted(t, c, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: before.Status.ClusterQueue}})
	waitDeleted(t, c, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: before.Status.LocalQueue, Namespace: before.Status.Namespace}})
	if err := c.Client.Get(t.Context(), key, &namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.Annotations[desired.AnnotationTeam] != team || namespace.Labels[desired.LabelGoverned] != "" || namespace.Labels[desired.LabelManagedQueue] != "" {
		t.Errorf("after the deletion the namespace has labels %v and annotations %v", namespace.Labels, namespace.Annotations)
	}

	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	if err := c.Client.Get(t.Context(), key, &namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.UID != uid || namespace.Labels[desired.LabelGoverned] != "true" {
		t.Errorf("the new allocation does not use the namespace of the deleted one: %v", namespace.ObjectMeta)
	}
}

// Deleting an allocation with admitted tasks sets stop policy Hold, reports what it
// waits for, and continues when the tasks finish.
func TestDeleteWaitsForTasks(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("busy")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	before := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	submit(t, c, team, "long")
	if err := c.Client.Delete(t.Context(), allocationNamed(team)); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "1 of the team's tasks are admitted")
	var queue kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: before.Status.ClusterQueue}, &queue); err != nil {
		t.Fatal(err)
	}
	if *queue.Spec.StopPolicy != kueue.Hold || queue.DeletionTimestamp != nil || queue.Status.AdmittedWorkloads != 1 {
		t.Errorf("stop policy %s, deletion %v and %d admitted tasks, want Hold, no deletion and 1 task", *queue.Spec.StopPolicy, queue.DeletionTimestamp, queue.Status.AdmittedWorkloads)
	}
	c.Kubectl(t, "", "delete", "job", "long", "-n", before.Status.Namespace)
	waitDeleted(t, c, allocationNamed(team))
	waitDeleted(t, c, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: before.Status.ClusterQueue}})
}

// With the drain annotation, deletion requeues admitted tasks. They are admitted
// again once the team has quota.
func TestDeleteDrainsWithAnnotation(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("drained")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	create(t, c, team, spec)
	before := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	submit(t, c, team, "long")
	c.Kubectl(t, "", "annotate", "computeallocation", team, "kuota.dev/drain=true")
	if err := c.Client.Delete(t.Context(), allocationNamed(team)); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, c, allocationNamed(team))
	var workloads kueue.WorkloadList
	if err := c.Client.List(t.Context(), &workloads, client.InNamespace(before.Status.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(workloads.Items) != 1 || meta.IsStatusConditionTrue(workloads.Items[0].Status.Conditions, kueue.WorkloadAdmitted) {
		t.Errorf("%d workloads, want 1 that is not admitted", len(workloads.Items))
	}
	create(t, c, team, spec)
	admitted(t, c, team, 1)
	c.Kubectl(t, "", "delete", "job", "long", "-n", before.Status.Namespace, "--wait=false")
}

// An existing namespace in spec.namespace gets Kuota's labels, and has its own
// labels unchanged after the deletion.
func TestNamedNamespaceIsAdopted(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("guest")
	name := clustertest.Name("research")
	own := map[string]string{"app.kubernetes.io/managed-by": "Helm", "example.com/owner": "research"}
	if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own}}); err != nil {
		t.Fatal(err)
	}
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Namespace = name
	create(t, c, team, spec)
	if got := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, ""); got.Status.Namespace != name {
		t.Errorf("status.namespace is %s, want %s", got.Status.Namespace, name)
	}
	rival := clustertest.Name("rival")
	create(t, c, rival, spec)
	conditionIs(t, c, rival, v1alpha1.ConditionReady, metav1.ConditionFalse, "namespace "+name+" belongs to another team")

	if err := c.Client.Delete(t.Context(), allocationNamed(team)); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, c, allocationNamed(team))
	var namespace corev1.Namespace
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
		t.Fatal(err)
	}
	for label, value := range own {
		if namespace.Labels[label] != value {
			t.Errorf("label %s is %q, want %q", label, namespace.Labels[label], value)
		}
	}
}

// Nominal quota beyond the capacity is allowed. WithinCapacity reports it for every
// team of the pool.
func TestOverCapacityIsReported(t *testing.T) {
	c := setup(t)
	first, second := clustertest.Name("first"), clustertest.Name("second")
	create(t, c, first, specOf(v1alpha1.QuotaRow{InstanceType: "ml.trn1.32xlarge", Quantities: accelerators(16)}))
	conditionIs(t, c, first, v1alpha1.ConditionWithinCapacity, metav1.ConditionTrue, "")
	create(t, c, second, specOf(v1alpha1.QuotaRow{InstanceType: "ml.trn1.32xlarge", Quantities: accelerators(4)}))
	conditionIs(t, c, second, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for _, team := range []string{first, second} {
		conditionIs(t, c, team, v1alpha1.ConditionWithinCapacity, metav1.ConditionFalse, "ml.trn1.32xlarge: 20 of 16 Neuron devices")
	}
	if err := c.Client.Delete(t.Context(), allocationNamed(second)); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, c, first, v1alpha1.ConditionWithinCapacity, metav1.ConditionTrue, "")
}

// The quota of a queue that is only observed counts too, as its owner changes it.
func TestOverCapacityOfObservedQueue(t *testing.T) {
	c := setup(t)
	team, observed := clustertest.Name("first"), clustertest.Name("observed")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.trn1.32xlarge", Quantities: accelerators(16)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.Apply(t, strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  cohortName: NAME
  resourceGroups:
  - coveredResources: [aws.amazon.com/neurondevice]
    flavors: [{name: ml.trn1.32xlarge, resources: [{name: aws.amazon.com/neurondevice, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: jobs, namespace: NAME}
spec: {clusterQueue: NAME}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: NAME}
spec: {management: Observe, namespace: NAME, clusterQueueName: NAME, localQueueName: jobs, fairShareWeight: 0}
`, "NAME", observed))
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), allocationNamed(observed))
		c.Kubectl(t, "", "delete", "clusterqueue", observed)
	})
	for _, name := range []string{team, observed} {
		conditionIs(t, c, name, v1alpha1.ConditionWithinCapacity, metav1.ConditionFalse, "ml.trn1.32xlarge: 20 of 16 Neuron devices")
	}
	c.Kubectl(t, "", "patch", "clusterqueue", observed, "--type=json", "-p", `[{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": 0}]`)
	for _, name := range []string{team, observed} {
		conditionIs(t, c, name, v1alpha1.ConditionWithinCapacity, metav1.ConditionTrue, "")
	}
}

// A held allocation is ready, and its queue is not active.
func TestHoldIsReported(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("held")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Activation = v1alpha1.Hold
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionQueueActive, metav1.ConditionFalse, "stopped")
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}
