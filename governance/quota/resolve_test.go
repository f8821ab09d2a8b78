package quota_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func percent(p int32) *int32 { return &p }

func row(instanceType string, a v1alpha1.Quantities) v1alpha1.QuotaRow {
	return v1alpha1.QuotaRow{InstanceType: instanceType, Quantities: a}
}

func TestBorrowLimits(t *testing.T) {
	half := []v1alpha1.QuotaRow{row("ml.g6.12xlarge", v1alpha1.Quantities{Accelerators: amount(2), VCPU: quantity("48")})}
	cases := map[string]struct {
		spec          v1alpha1.ComputeAllocationSpec
		want          map[string]string
		wantUnlimited bool
	}{
		"half of one network device is rounded down to none": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: percent(50)}},
			want: map[string]string{"nvidia.com/gpu": "1", "cpu": "24", "memory": "96Gi"},
		},
		"fifty percent by default": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half},
			want: map[string]string{"nvidia.com/gpu": "1", "cpu": "24", "memory": "96Gi"},
		},
		"ten percent is rounded down": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{BorrowLimitPercent: percent(10)}},
			want: map[string]string{"cpu": "4800m", "memory": "19660Mi"},
		},
		"a hundred times the quota": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{BorrowLimitPercent: percent(10000)}},
			want: map[string]string{"nvidia.com/gpu": "200", "cpu": "4800", "memory": "19200Gi", "vpc.amazonaws.com/efa": "100"},
		},
		"lend without borrowing": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.Lend}},
			want: map[string]string{},
		},
		"unlimited": {
			spec:          v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{Unlimited: true}},
			wantUnlimited: true,
		},
		"an absolute limit replaces the percentage": {
			spec: v1alpha1.ComputeAllocationSpec{Quota: half, Sharing: v1alpha1.Sharing{BorrowLimits: []v1alpha1.QuotaRow{row("ml.g6.12xlarge", v1alpha1.Quantities{Accelerators: amount(4)})}}},
			want: map[string]string{"nvidia.com/gpu": "4", "cpu": "48", "memory": "192Gi", "vpc.amazonaws.com/efa": "1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resolved, errs := quota.Resolve(&c.spec, catalog.Catalog{})
			if len(errs) > 0 {
				t.Fatalf("got errors %v, want none", errs)
			}
			if got := resolved.Pools[0].BorrowingLimit; c.wantUnlimited != (got == nil) {
				t.Errorf("got limit %v, want unlimited: %t", got, c.wantUnlimited)
			} else if diff := cmp.Diff(c.want, quantities(got)); got != nil && diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveKeepsOrderOfPreference(t *testing.T) {
	resolved, errs := quota.Resolve(&v1alpha1.ComputeAllocationSpec{
		Quota: []v1alpha1.QuotaRow{
			row("ml.p5.48xlarge", v1alpha1.Quantities{Instances: amount(1)}),
			row("ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 7)}),
			row("ml.c5.2xlarge", v1alpha1.Quantities{VCPU: quantity("2")}),
		},
		Sharing: v1alpha1.Sharing{BorrowLimits: []v1alpha1.QuotaRow{
			row("ml.g6.12xlarge", v1alpha1.Quantities{Accelerators: amount(1)}),
			row("ml.g5.2xlarge", v1alpha1.Quantities{Accelerators: amount(1)}),
		}},
	}, catalog.Catalog{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var order []string
	for _, p := range resolved.Pools {
		order = append(order, p.Name)
		if diff := cmp.Diff(resolved.Covered(), p.Nominal.Names()); diff != "" {
			t.Errorf("resources of the quota of %s (-covered +got):\n%s", p.Name, diff)
		}
		if diff := cmp.Diff(resolved.Covered(), p.BorrowingLimit.Names()); diff != "" {
			t.Errorf("resources of the limit of %s (-covered +got):\n%s", p.Name, diff)
		}
	}
	want := []string{"ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.c5.2xlarge", "ml.g5.2xlarge", "ml.g6.12xlarge"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	wantCovered := []string{"nvidia.com/gpu", "aws.amazon.com/neurondevice", "cpu", "memory", "vpc.amazonaws.com/efa", "nvidia.com/mig-1g.5gb"}
	if diff := cmp.Diff(wantCovered, resolved.Covered()); diff != "" {
		t.Errorf("covered resources (-want +got):\n%s", diff)
	}
}

func TestResolveRejects(t *testing.T) {
	gpu := v1alpha1.Quantities{Accelerators: amount(1)}
	sixteen := make([]v1alpha1.QuotaRow, 16)
	for i := range sixteen {
		sixteen[i] = row(catalog.KnownTypes()[i], v1alpha1.Quantities{VCPU: quantity("1")})
	}
	cases := map[string]struct {
		spec     v1alpha1.ComputeAllocationSpec
		wantPath string
		wantText string
	}{
		"a mistyped type: similar types are suggested": {
			v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{row("ml.p5.48xlage", gpu)}}, "spec.quota[0].instanceType", "ml.p5.48xlarge",
		},
		"the start of a type: types with that start are suggested": {
			v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{row("ml.trn2", gpu)}}, "spec.quota[0].instanceType", "ml.trn2.48xlarge",
		},
		"a pool that the policy does not define": {
			v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{Pool: "h100", Quantities: gpu}}}, "spec.quota[0].pool", "h100",
		},
		"the same type twice": {
			v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{row("ml.g5.2xlarge", gpu), row("ml.g5.2xlarge", gpu)}}, "spec.quota[1].instanceType", "row 1",
		},
		"sixteen rows": {v1alpha1.ComputeAllocationSpec{Quota: sixteen}, "spec.quota", "15"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := quota.Resolve(&c.spec, catalog.Catalog{})
			if len(errs) != 1 || errs[0].Path != c.wantPath || !strings.Contains(errs[0].Message, c.wantText) {
				t.Errorf("got %v; want one error at %s with %q", errs, c.wantPath, c.wantText)
			}
		})
	}
}

func TestCheckTeamName(t *testing.T) {
	for _, name := range []string{"vision", "a", "team-2", strings.Repeat("a", 40)} {
		if problem := quota.CheckTeamName(name); problem != "" {
			t.Errorf("%q: got %q, want it accepted", name, problem)
		}
	}
	for _, name := range []string{"", "Vision", "-a", "a-", "a.b", "a b", "ä", "new", "cluster", "a\n", strings.Repeat("a", 41)} {
		if quota.CheckTeamName(name) == "" {
			t.Errorf("%q is accepted, want it rejected", name)
		}
	}
}

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
	got, ok = quota.Typed(spec, catalog.Catalog{}, p5, quota.Resources{"example.com/license": 3})
	if nominal := got.Pools[0].Nominal; !ok || nominal["example.com/license"] != 3 || nominal[catalog.GPU] != 8 {
		t.Errorf("got %v, want 3 licenses beside a whole instance", nominal)
	}
	got, ok = quota.Typed(spec, catalog.Catalog{}, "ml.g5.xlarge", quota.Resources{catalog.GPU: 2})
	if !ok || len(got.Pools) != 2 || got.Pools[1].Nominal[catalog.GPU] != 2 {
		t.Errorf("got %+v, want a second pool with 2 GPUs", got.Pools)
	}
}
