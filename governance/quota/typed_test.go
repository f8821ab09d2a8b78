package quota_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

// TestTyped types GPUs into the row of an ml.p5.48xlarge (8 GPUs, 192 vCPU, 2 TiB), and
// into the row of a pool without one.
func TestTyped(t *testing.T) {
	const p5 = "ml.p5.48xlarge"
	spec := &v1alpha1.ComputeAllocationSpec{
		Quota:   []v1alpha1.QuotaRow{{InstanceType: p5, Quantities: v1alpha1.Quantities{Instances: ptr.To[int64](1)}}},
		Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: ptr.To[int32](50)},
	}
	got, ok := quota.Typed(spec, catalog.Catalog{}, p5, quota.Resources{catalog.GPU: 12, catalog.CPU: 200_000})
	if !ok {
		t.Fatal("got an allocation that is not valid")
	}
	nominal, limit := got.Pools[0].Nominal, got.Pools[0].BorrowingLimit
	want := map[string]resources.Amount{catalog.GPU: 12, catalog.CPU: 200_000, catalog.Memory: 3 << 40} // memory follows from the GPUs
	for name, amount := range want {
		if nominal[name] != amount || limit[name] != amount/2 {
			t.Errorf("%s: got %d, and a limit of %d; want %d and half of it", name, nominal[name], limit[name], amount)
		}
	}
	if diff := cmp.Diff(ptr.To[int64](1), spec.Quota[0].Instances); diff != "" {
		t.Errorf("the allocation itself changed: %s", diff)
	}
	got, ok = quota.Typed(spec, catalog.Catalog{}, "ml.g5.xlarge", quota.Resources{catalog.GPU: 2})
	if !ok || len(got.Pools) != 2 || got.Pools[1].Nominal[catalog.GPU] != 2 {
		t.Errorf("got %+v, want a second pool with 2 GPUs", got.Pools)
	}
}
