package enforcement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const typeLabel = "node.kubernetes.io/instance-type"

// Until Kueue's configuration is known, only Jobs are assumed to be managed. An instance
// type that also has nodes outside pools of several types can be selected.
func TestParameters(t *testing.T) {
	node := func(name, instanceType, zone string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{typeLabel: instanceType, "zone": zone}}}
	}
	pools := []v1alpha1.Pool{{Name: "a", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"zone": "a"}}}}
	types := catalog.New(catalog.Input{
		Nodes:             []corev1.Node{node("1", "ml.g5.2xlarge", "a"), node("2", "ml.g6.12xlarge", "a"), node("3", "ml.g6.12xlarge", "b"), node("4", "ml.c5.2xlarge", "b")},
		InstanceTypeLabel: typeLabel, Pools: pools,
	})
	policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{
		{Name: "dev", DefaultTimeLimitSeconds: ptr.To[int32](3600), MaximumTimeLimitSeconds: ptr.To[int32](5400)},
		{Name: "low-priority", DefaultTimeLimitSeconds: ptr.To[int32](60)}, {Name: "top"},
		{Name: "short", MaximumTimeLimitSeconds: ptr.To[int32](120)},
	}}}
	want := map[string]string{
		"enforcement": "RequireQueue", "kueue": "system:serviceaccount:kueue-system:kueue-controller-manager", "integrations": "batch/job",
		"controllers": "x,y", "classes": "dev-priority,low-priority,top-priority,short-priority", "numericPriorities": "false", "timeLimits": "dev-priority=3600=5400=1h30m,low-priority=60=0=,short-priority=120=120=2m", "instanceTypeLabel": typeLabel, "groupedTypes": "ml.g5.2xlarge=a",
	}
	if diff := cmp.Diff(want, enforcement.Parameters(policy, types, []string{"x", "y"}, typeLabel, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	policy.Spec.Enforcement = v1alpha1.EnforcementNone
	policy.Status.Kueue = &v1alpha1.KueueStatus{Account: "system:serviceaccount:other:kueue", Integrations: []string{"batch/job", "pod"}}
	got := enforcement.Parameters(policy, types, nil, typeLabel, false)
	if got["enforcement"] != "None" || got["kueue"] != "system:serviceaccount:other:kueue" || got["integrations"] != "batch/job,pod" {
		t.Errorf("got %v", got)
	}
}

// A ConfigMap has at most 1 MiB. Namespaces whose LocalQueues do not fit have none.
func TestQueueParameters(t *testing.T) {
	queue := func(namespace, name string) kueue.LocalQueue {
		return kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	queues := []kueue.LocalQueue{queue("b", "main"), queue("a-b", "x"), queue("a", "z"), queue("a", "main")}
	want := map[string]string{"queues.a": "main,z", "queues.a-b": "x", "queues.b": "main"}
	if diff := cmp.Diff(want, enforcement.QueueParameters(queues)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 20_000 {
		queues = append(queues, queue(fmt.Sprintf("n-%d", i), strings.Repeat("q", 60)))
	}
	size := 0
	for key, value := range enforcement.QueueParameters(queues) {
		size += len(key) + len(value)
	}
	if size < 500<<10 || size > 512<<10 {
		t.Errorf("got %d bytes, want about 512 KiB", size)
	}
}

// Jobs that Kueue labels with its default priority class are admitted: its webhook
// runs before the policies.
func TestDefaultClass(t *testing.T) {
	for name, tc := range map[string]struct {
		status *v1alpha1.KueueStatus
		exists bool
		want   string
	}{
		"Kueue labels jobs":                {&v1alpha1.KueueStatus{DefaultPriorityClass: "default"}, true, "dev-priority,default"},
		"the class does not exist":         {&v1alpha1.KueueStatus{DefaultPriorityClass: "default"}, false, "dev-priority"},
		"Kueue labels none":                {&v1alpha1.KueueStatus{}, true, "dev-priority"},
		"Kueue's configuration is unknown": {nil, true, "dev-priority,default"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{{Name: "dev"}}}, Status: v1alpha1.ClusterPolicyStatus{Kueue: tc.status}}
			if got := enforcement.Parameters(policy, catalog.Catalog{}, nil, typeLabel, tc.exists)["classes"]; got != tc.want {
				t.Errorf("got the classes %s, want %s", got, tc.want)
			}
		})
	}
}

func TestProbeResult(t *testing.T) {
	const denied = `configmaps "kuota-enforcement" is invalid: : ValidatingAdmissionPolicy 'kuota-enforcement-probe' with binding 'kuota-enforcement-probe' denied request: `
	for name, tc := range map[string]struct {
		err  error
		want enforcement.ProbeResult
	}{
		"admitted":           {nil, enforcement.ProbeAdmitted},
		"rejected":           {errors.New(denied + "the API server has the current parameters"), enforcement.ProbeRejected},
		"outdated":           {errors.New(denied + "the API server has outdated parameters"), enforcement.ProbeOutdated},
		"another policy":     {errors.New("ValidatingAdmissionPolicy 'company' denied request: the API server has the current parameters"), enforcement.ProbeUnknown},
		"an error of ours":   {errors.New("ValidatingAdmissionPolicy 'kuota-enforcement-probe' failed: no such key"), enforcement.ProbeUnknown},
		"no permission":      {errors.New(`configmaps "kuota-enforcement" is forbidden`), enforcement.ProbeUnknown},
		"no response at all": {errors.New("connection refused"), enforcement.ProbeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enforcement.ProbeResultOf(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
