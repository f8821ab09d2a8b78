package diagnostics

import (
	"testing"

	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var ours = map[string]string{desired.LabelManagedBy: desired.ManagedBy}

func TestReadOtherSettings(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	_ = kueue.AddToScheme(scheme)
	queue := func(name string, labels map[string]string, change func(*kueue.ClusterQueue)) *kueue.ClusterQueue {
		q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		change(q)
		return q
	}
	byUsage := func(q *kueue.ClusterQueue) {
		q.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	}
	automated := func(status metav1.ConditionStatus) func(*kueue.ClusterQueue) {
		return func(q *kueue.ClusterQueue) {
			q.Status.Conditions = []metav1.Condition{{Type: kueue.MultiKueueManagerQuotaAutomation, Status: status}}
		}
	}
	task := func(name string, finished metav1.ConditionStatus) *kueue.Workload {
		return &kueue.Workload{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Annotations: map[string]string{tasks.PriorityBoostAnnotation: "-5"}},
			Status:     kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadFinished, Status: finished}}},
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		queue("b", ours, byUsage), queue("a", ours, byUsage), queue("other", nil, byUsage),
		queue("c", ours, func(q *kueue.ClusterQueue) {
			q.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.NoAdmissionFairSharing}
		}),
		queue("d", ours, automated(metav1.ConditionTrue)), queue("e", ours, automated(metav1.ConditionFalse)),
		queue("f", ours, func(q *kueue.ClusterQueue) {
			q.Annotations = map[string]string{tasks.PreemptionConfigAnnotation: "hero"}
		}),
		task("waits", metav1.ConditionFalse), task("done", metav1.ConditionTrue),
		&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Value: 7},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{desired.LabelGoverned: "true"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
	).Build()
	got, err := ReadOtherSettings(t.Context(), reader)
	if err != nil {
		t.Fatal(err)
	}
	want := OtherSettings{
		UsageOrdered: []string{"a", "b"}, QuotaAutomated: []string{"d"}, PreemptionConfigs: []string{"f"}, Boosted: 1, DefaultPriority: n(7),
		Namespaces: []TeamNamespace{{"team-a", labels.Set{desired.LabelGoverned: "true"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An empty list of effective quota replaces the quota of the spec too.
func TestReplacedQuotas(t *testing.T) {
	queue := func(name string, labels map[string]string, status map[string]any) unstructured.Unstructured {
		q := unstructured.Unstructured{Object: map[string]any{"status": status}}
		q.SetName(name)
		q.SetLabels(labels)
		return q
	}
	effective := map[string]any{"effectiveQuotas": map[string]any{"orchestratorRef": map[string]any{"name": "nodes"}, "resourceGroups": []any{}}}
	got := ReplacedQuotas([]unstructured.Unstructured{queue("b", ours, effective), queue("a", ours, effective), queue("other", nil, effective), queue("c", ours, map[string]any{})})
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
