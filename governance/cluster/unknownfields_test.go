package cluster

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	// As numbers of the API server are decoded.
	u := &unstructured.Unstructured{}
	b, err := (&unstructured.Unstructured{Object: fields}).MarshalJSON()
	if err == nil {
		err = u.UnmarshalJSON(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestUpdateKeepsUnknownFields checks that an update changes what the form changed, and
// keeps the fields of a newer CRD everywhere else.
func TestUpdateKeepsUnknownFields(t *testing.T) {
	const allocation = `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: vision, annotations: {example.com/a: b}, resourceVersion: "7"}
spec:
  next: {deep: [1, 2]}
  description: old
  fairShareWeight: 0
  sharing: {strategy: Lend, next: 1}
  members: [{kind: User, name: ada, next: a}, {kind: User, name: bob, next: b}]
  quota: [{instanceType: a, accelerators: 2, next: x}, {pool: b, instances: 3, next: y}]
`
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue}
spec:
  next: 1
  template:
    spec: {next: 2, containers: [{name: proxy, next: 3}, {name: manager, next: 4, args: [--a]}]}
`
	const policy = `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  next: true
  gangScheduling: {timeout: 5m, next: 2, requeuing: {backoffBaseSeconds: 60, next: 3}}
  priorityClasses: [{name: high, weight: 90, next: 4}, {name: low, weight: 10, next: 5}]
status: {observedGeneration: 3, next: 6}
`
	onAllocation := func(change func(*v1alpha1.ComputeAllocation)) func(client.Object) {
		return func(o client.Object) { change(o.(*v1alpha1.ComputeAllocation)) }
	}
	onPolicy := func(change func(*v1alpha1.ClusterPolicy)) func(client.Object) {
		return func(o client.Object) { change(o.(*v1alpha1.ClusterPolicy)) }
	}
	for name, tc := range map[string]struct {
		live, want string
		into       client.Object
		change     func(client.Object)
	}{
		"nothing": {live: allocation, want: allocation, into: &v1alpha1.ComputeAllocation{}, change: func(client.Object) {}},
		"fields, an item, and the order of items": {live: allocation, into: &v1alpha1.ComputeAllocation{}, change: onAllocation(func(a *v1alpha1.ComputeAllocation) {
			a.Spec.Description, a.Spec.DisplayName, a.Spec.FairShareWeight = "", "Vision", 5
			a.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "bob"}, {Kind: "User", Name: "cy"}}
			a.Spec.Quota[1].Instances = ptr.To[int64](4)
			a.Annotations["kuota.dev/reason"] = "more"
		}), want: `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: vision, annotations: {example.com/a: b, kuota.dev/reason: more}, resourceVersion: "7"}
spec:
  next: {deep: [1, 2]}
  displayName: Vision
  fairShareWeight: 5
  sharing: {strategy: Lend, next: 1}
  members: [{kind: User, name: bob, next: b}, {kind: User, name: cy}]
  quota: [{instanceType: a, accelerators: 2, next: x}, {pool: b, instances: 4, next: y}]
`},
		"the arguments of a container of a newer Kubernetes": {live: deployment, into: &appsv1.Deployment{}, change: func(o client.Object) {
			template := &o.(*appsv1.Deployment).Spec.Template
			template.Annotations = map[string]string{"kuota.dev/configuration": "1"}
			template.Spec.Containers[1].Args = []string{"--b", "--c"}
		}, want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue}
spec:
  next: 1
  template:
    metadata: {annotations: {kuota.dev/configuration: "1"}}
    spec: {next: 2, containers: [{name: proxy, next: 3}, {name: manager, next: 4, args: [--b, --c]}]}
`},
		"fields of nested structs": {live: policy, into: &v1alpha1.ClusterPolicy{}, change: onPolicy(func(p *v1alpha1.ClusterPolicy) {
			p.Spec.GangScheduling.Enabled = true
			p.Spec.GangScheduling.Requeuing.BackoffBaseSeconds = ptr.To[int32](30)
			p.Spec.PriorityClasses = append([]v1alpha1.PriorityClass{{Name: "top", Weight: ptr.To[int32](100)}}, p.Spec.PriorityClasses[1])
			p.Spec.IdleCompute.ShareUnallocated = true
		}), want: `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  next: true
  idleCompute: {shareUnallocated: true}
  gangScheduling: {enabled: true, timeout: 5m, next: 2, requeuing: {backoffBaseSeconds: 30, next: 3}}
  priorityClasses: [{name: top, weight: 100}, {name: low, weight: 10, next: 5}]
status: {observedGeneration: 3, next: 6}
`},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, tc.live)
			if err := decode(live, tc.into); err != nil {
				t.Fatal(err)
			}
			before := tc.into.DeepCopyObject().(client.Object)
			tc.change(tc.into)
			got, err := updated(live, before, tc.into)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("updated (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.live).Object, live.Object); diff != "" {
				t.Errorf("the argument changed (-before +after):\n%s", diff)
			}
		})
	}
}
