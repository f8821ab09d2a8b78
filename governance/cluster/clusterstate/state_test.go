package clusterstate_test

import (
	"context"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The catalog has the pools of the policy's status, not those of its spec.
func TestCatalogHasAppliedPools(t *testing.T) {
	policy := v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	policy.Spec.Pools = []v1alpha1.Pool{{Name: "requested", Match: v1alpha1.PoolMatch{Accelerator: "L4"}}}
	policy.Status.Pools = []v1alpha1.Pool{{Name: "l4", Match: v1alpha1.PoolMatch{Accelerator: "L4"}}}
	policy.Status.ReportedTypes = []v1alpha1.ReportedType{{InstanceType: "lab.big", Capacity: corev1.ResourceList{catalog.CPU: resource.MustParse("64")}}}
	for name, policies := range map[string][]v1alpha1.ClusterPolicy{"no policy": nil, "a policy": {policy}} {
		t.Run(name, func(t *testing.T) {
			types, err := clusterstate.Catalog(t.Context(), reader{policies}, catalog.InstanceTypeLabel)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := types.Named("requested"); ok {
				t.Error("the catalog has a pool that is not applied")
			}
			_, named := types.Named("l4")
			_, reported := types.Pool("lab.big")
			if want := len(policies) > 0; named != want || reported != want {
				t.Errorf("the catalog has the applied pool: %v, the reported type: %v; want %v", named, reported, want)
			}
		})
	}
}

// reader is a cluster without nodes.
type reader struct{ policies []v1alpha1.ClusterPolicy }

func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	for i := range r.policies {
		if policy, ok := object.(*v1alpha1.ClusterPolicy); ok && r.policies[i].Name == key.Name {
			r.policies[i].DeepCopyInto(policy)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "clusterpolicies"}, key.Name)
}

func (reader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
