package interrupted_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// stateOf returns the objects that a scenario leaves in the cluster as YAML, without
// times, UIDs and the team's name.
func stateOf(t *testing.T, team string) string {
	t.Helper()
	c := clustertest.Get(t)
	var out strings.Builder
	add := func(list client.ObjectList, options ...client.ListOption) {
		t.Helper()
		if err := c.Client.List(t.Context(), list, options...); err != nil {
			t.Fatal(err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
		if err != nil {
			t.Fatal(err)
		}
		items, _ := fields["items"].([]any)
		for _, item := range items {
			object := &unstructured.Unstructured{Object: item.(map[string]any)}
			if !isRelevant(object, team) {
				continue
			}
			fmt.Fprintf(&out, "--- %T\n%s", list, plainYAML(t, object))
		}
	}
	add(&kueue.ClusterQueueList{})
	add(&kueue.LocalQueueList{})
	add(&kueue.ResourceFlavorList{})
	add(&kueue.WorkloadPriorityClassList{})
	add(&kueue.CohortList{})
	add(&rbacv1.RoleBindingList{})
	add(&corev1.ResourceQuotaList{})
	add(&corev1.LimitRangeList{})
	add(&corev1.NamespaceList{})
	add(&v1alpha1.ComputeAllocationList{})
	add(&v1alpha1.DepartmentList{})
	add(&v1alpha1.ClusterPolicyList{})
	var nodes corev1.NodeList
	if err := c.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		fmt.Fprintf(&out, "node %s in pool %q\n", node.Name, node.Labels["kuota.dev/pool"])
	}
	return strings.ReplaceAll(out.String(), team, "TEAM")
}

// isRelevant reports whether a scenario can change object.
func isRelevant(object *unstructured.Unstructured, team string) bool {
	if strings.Contains(object.GetName(), team) || strings.Contains(object.GetNamespace(), team) {
		return object.GetName() != "kube-root-ca.crt"
	}
	return object.GetNamespace() == "" && object.GetKind() == "" && (object.GetLabels()["app.kubernetes.io/managed-by"] == "kuota" && object.GetLabels()["sagemaker.amazonaws.com/quota-allocation-id"] == "" && object.GetLabels()[desired.LabelDepartment] == "" || object.GetName() == v1alpha1.ClusterPolicyName)
}

// plainYAML returns the fields of object that must not depend on an interruption.
func plainYAML(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	annotations := object.GetAnnotations()
	if annotations[desired.AnnotationDesired] != "" {
		annotations[desired.AnnotationDesired] = "a digest that depends on the team's name"
	}
	if department, _, ok := strings.Cut(annotations[desired.AnnotationDepartment], "/"); ok { // with its UID
		annotations[desired.AnnotationDepartment] = department
	}
	delete(annotations, v1alpha1.AnnotationChangedGeneration) // the policy exists before and after a scenario
	fields := map[string]any{"name": object.GetName(), "labels": object.GetLabels(), "annotations": annotations, "finalizers": object.GetFinalizers(), "deleting": object.GetDeletionTimestamp() != nil}
	for _, part := range []string{"spec", "subjects", "roleRef", "value", "description"} {
		fields[part] = object.Object[part]
	}
	status, _ := object.Object["status"].(map[string]any)
	for _, part := range []string{"quota", "namespace", "clusterQueue", "localQueue", "ranking", "pools", "reportedTypes", "observedGeneration"} {
		if status[part] != nil && (object.GetName() == v1alpha1.ClusterPolicyName || status["localQueue"] != nil) {
			fields["status."+part] = status[part]
		}
	}
	if ranking, ok := fields["status.ranking"].(map[string]any); ok {
		delete(ranking, "since")
	}
	if object.GetName() == v1alpha1.ClusterPolicyName {
		delete(fields, "status.observedGeneration")
	}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition := c.(map[string]any)
		if condition["type"] == "WithinCapacity" || condition["type"] == "MultiKueueManagerQuotaAutomation" {
			continue // depends on objects of other scenarios
		}
		fields[fmt.Sprint("condition.", condition["type"])] = fmt.Sprint(condition["status"], " ", condition["reason"], " ", condition["message"])
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func diff(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}

// conditionTrue returns an error unless the condition is True for generation.
func conditionTrue(conditions []metav1.Condition, name string, generation int64) error {
	for _, c := range conditions {
		if c.Type == name && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation {
			return nil
		}
	}
	return fmt.Errorf("got conditions %+v, want %s True at generation %d", conditions, name, generation)
}

// allocationReady returns a check that returns nil once the allocation is ready.
func allocationReady(t *testing.T, team string) func(context.Context) error {
	return func(ctx context.Context) error {
		var allocation v1alpha1.ComputeAllocation
		if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		return conditionTrue(allocation.Status.Conditions, v1alpha1.ConditionReady, allocation.Generation)
	}
}
