package catalog_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
)

// Added pools get the nodes that no pool of the policy matches. The original
// catalog is unchanged.
func TestWith(t *testing.T) {
	in := catalog.Input{
		Nodes:             []corev1.Node{node("ml.g6.12xlarge", nil), node("ml.g6.12xlarge", nil), node("ml.p5.48xlarge", nil)},
		InstanceTypeLabel: catalog.InstanceTypeLabel,
		Pools:             []v1alpha1.Pool{{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}},
	}
	before := catalog.New(in)
	after := before.With(v1alpha1.Pool{Name: "l4", Match: v1alpha1.PoolMatch{Accelerator: "L4"}}, v1alpha1.Pool{Name: "p5", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.p5"}})
	for name, want := range map[string]int64{"h100": 1, "l4": 2, "p5": 0} {
		if pool, ok := after.Named(name); !ok || pool.Nodes != want {
			t.Errorf("pool %s has %d nodes, want %d", name, pool.Nodes, want)
		}
	}
	if _, ok := before.Named("l4"); ok || len(in.Pools) != 1 {
		t.Error("With changed the original catalog")
	}
}
