package quota_test

import (
	"maps"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func inPool(pool string, a v1alpha1.Quantities) v1alpha1.QuotaRow {
	return v1alpha1.QuotaRow{Pool: pool, Quantities: a}
}

// cluster returns a catalog with two p5.48xlarge and one p5.4xlarge in pool h100, a
// p4d and a p4de in a100, a trn1 in neuron, one g5 in each of blue and green, and
// the pools later and chips without nodes.
func cluster() catalog.Catalog {
	var nodes []corev1.Node
	for _, line := range []string{
		"ml.p5.48xlarge", "ml.p5.48xlarge", "ml.p5.4xlarge", "ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.trn1.32xlarge", "ml.g5.2xlarge blue", "ml.g5.2xlarge green", "ml.c5.large grey", "ml.g6.12xlarge grey",
	} {
		instanceType, color, _ := strings.Cut(line, " ")
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: instanceType, "color": color}}})
	}
	return catalog.New(catalog.Input{Nodes: nodes, InstanceTypeLabel: catalog.InstanceTypeLabel, Pools: []v1alpha1.Pool{
		{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}},
		{Name: "a100", Match: v1alpha1.PoolMatch{Accelerator: "A100"}},
		{Name: "neuron", Match: v1alpha1.PoolMatch{Accelerator: "Trainium1"}},
		{Name: "blue", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"color": "blue"}}},
		{Name: "green", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"color": "green"}}},
		{Name: "later", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"color": "red"}}},
		{Name: "chips", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.trn2.48xlarge", "ml.p5e.48xlarge"}}},
	}})
}

func TestRowsByPool(t *testing.T) {
	cases := map[string]struct {
		row      v1alpha1.QuotaRow
		wantPool string
		want     map[string]string
	}{
		"a share of a pool of several types": {
			inPool("h100", v1alpha1.Quantities{Accelerators: amount(1)}), "h100", // of 17 GPUs, 400 vCPU, 4352 GiB
			map[string]string{"nvidia.com/gpu": "1", "cpu": "23529m", "memory": "256Gi", "vpc.amazonaws.com/efa": "4"},
		},
		"the whole pool": {
			inPool("h100", v1alpha1.Quantities{Accelerators: amount(17)}), "h100",
			map[string]string{"nvidia.com/gpu": "17", "cpu": "400", "memory": "4352Gi", "vpc.amazonaws.com/efa": "65"},
		},
		"an instance type resolves to its pool": {
			row("ml.p5.4xlarge", v1alpha1.Quantities{Accelerators: amount(17)}), "h100",
			map[string]string{"nvidia.com/gpu": "17", "cpu": "400", "memory": "4352Gi", "vpc.amazonaws.com/efa": "65"},
		},
		"partitions of a pool of several types are sevenths of all its GPUs": {
			inPool("a100", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 14)}), "a100", // of 16 GPUs, 192 vCPU, 2304 GiB
			map[string]string{"nvidia.com/mig-1g.5gb": "14", "cpu": "24", "memory": "288Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"a profile that only one of the types has": {
			inPool("a100", v1alpha1.Quantities{Partition: partition("mig-7g.80gb", 2)}), "a100",
			map[string]string{"nvidia.com/mig-7g.80gb": "2", "cpu": "24", "memory": "288Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"Neuron devices by pool": {
			inPool("neuron", v1alpha1.Quantities{Accelerators: amount(4)}), "neuron",
			map[string]string{"aws.amazon.com/neurondevice": "4", "cpu": "32", "memory": "128Gi", "vpc.amazonaws.com/efa": "2"},
		},
		"whole instances of a named pool that has one type": {
			inPool("blue", v1alpha1.Quantities{Instances: amount(2)}), "blue",
			map[string]string{"nvidia.com/gpu": "2", "cpu": "16", "memory": "64Gi"},
		},
		"vCPU and memory of a pool that has no nodes yet": {
			inPool("later", v1alpha1.Quantities{VCPU: quantity("8"), Memory: quantity("16Gi")}), "later",
			map[string]string{"cpu": "8", "memory": "16Gi"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resolved, errs := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{tc.row}}, cluster())
			if len(errs) > 0 {
				t.Fatalf("got errors %v, want none", errs)
			}
			if got := resolved.Pools[0]; got.Name != tc.wantPool {
				t.Errorf("got pool %s, want %s", got.Name, tc.wantPool)
			}
			if diff := cmp.Diff(tc.want, quantities(resolved.Pools[0].Nominal)); diff != "" {
				t.Errorf("filled in (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsByPoolRejected(t *testing.T) {
	gpu := v1alpha1.Quantities{Accelerators: amount(1)}
	cases := map[string]struct {
		rows     []v1alpha1.QuotaRow
		wantPath string
		want     string
	}{
		"a pool that the policy does not define": {[]v1alpha1.QuotaRow{inPool("h200", gpu)}, "spec.quota[0].pool", `there is no pool "h200" in the cluster policy; pools are a100, blue, chips, green, h100, later, neuron`},
		"a type named as a pool":                 {[]v1alpha1.QuotaRow{inPool("ml.g6.12xlarge", gpu)}, "spec.quota[0].pool", `there is no pool "ml.g6.12xlarge" in the cluster policy; it is an instance type: set instanceType instead of pool`},
		"a pool named as a type":                 {[]v1alpha1.QuotaRow{row("h100", gpu)}, "spec.quota[0].instanceType", `unknown instance type "h100": no node has it; it is a pool: set pool instead of instanceType`},
		"a pool and a type in one row":           {[]v1alpha1.QuotaRow{{Pool: "h100", InstanceType: "ml.p5.48xlarge", Quantities: gpu}}, "spec.quota[0].pool", "name either an instance type or a pool, not both"},
		"a type and its pool":                    {[]v1alpha1.QuotaRow{row("ml.p5.48xlarge", gpu), inPool("h100", gpu)}, "spec.quota[1].pool", "pool h100 and instance type ml.p5.48xlarge in row 1 are both pool h100; combine the rows"},
		"two types of one pool":                  {[]v1alpha1.QuotaRow{row("ml.p5.48xlarge", gpu), row("ml.p5.4xlarge", gpu)}, "spec.quota[1].instanceType", "instance type ml.p5.4xlarge and instance type ml.p5.48xlarge in row 1 are both pool h100; combine the rows"},
		"the same pool twice":                    {[]v1alpha1.QuotaRow{inPool("h100", gpu), inPool("h100", gpu)}, "spec.quota[1].pool", "pool h100 is already in row 1; combine the rows"},
		"a type that two named pools share":      {[]v1alpha1.QuotaRow{row("ml.g5.2xlarge", gpu)}, "spec.quota[0].instanceType", "instances of ml.g5.2xlarge are in the pools blue and green; name one of them"},
		"instances of several types":             {[]v1alpha1.QuotaRow{inPool("h100", v1alpha1.Quantities{Instances: amount(1)})}, "spec.quota[0].instances", "pool h100 has several instance types: enter accelerators, vCPU or memory"},
		"instances of a type without nodes":      {[]v1alpha1.QuotaRow{row("ml.trn1n.32xlarge", v1alpha1.Quantities{Instances: amount(1)})}, "spec.quota[0].instances", "ml.trn1n.32xlarge belongs to pool neuron, which has instances of ml.trn1.32xlarge only: enter accelerators, vCPU or memory"},
		"instances of a pool without nodes":      {[]v1alpha1.QuotaRow{inPool("later", v1alpha1.Quantities{Instances: amount(1)})}, "spec.quota[0].instances", "pool later has no nodes, so the size of an instance is unknown; enter vCPU and memory"},
		"accelerators of a pool without nodes":   {[]v1alpha1.QuotaRow{inPool("later", gpu)}, "spec.quota[0].accelerators", "pool later has no nodes, so its accelerators are unknown; enter vCPU and memory"},
		"accelerators of two kinds":              {[]v1alpha1.QuotaRow{inPool("chips", gpu)}, "spec.quota[0].accelerators", "pool chips has several kinds of accelerators, aws.amazon.com/neurondevice and nvidia.com/gpu, which cannot be counted together: create a pool for each"},
		"an unknown pool and a negative amount":  {[]v1alpha1.QuotaRow{inPool("h200", v1alpha1.Quantities{Accelerators: amount(-1), VCPU: quantity("1")})}, "spec.quota[0].accelerators", "10,000,000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: tc.rows}, cluster())
			for _, e := range errs {
				if e.Path == tc.wantPath && strings.Contains(e.Message, tc.want) {
					return
				}
			}
			t.Errorf("got errors %v; want one at %s with %q", errs, tc.wantPath, tc.want)
		})
	}
}

// The absolute limit of a pool replaces the percentage and unlimited borrowing.
func TestAbsoluteLimits(t *testing.T) {
	gpus := func(n int64) v1alpha1.Quantities { return v1alpha1.Quantities{Accelerators: amount(n)} }
	own := []v1alpha1.QuotaRow{inPool("h100", gpus(17)), inPool("a100", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 14)})}
	type limits = map[string]map[string]string // by pool; nil is unlimited
	cases := map[string]struct {
		sharing v1alpha1.Sharing
		want    limits
	}{
		"with a percentage": {
			v1alpha1.Sharing{BorrowLimitPercent: percent(100), BorrowLimits: []v1alpha1.QuotaRow{row("ml.p5.4xlarge", gpus(34))}},
			limits{
				"h100": {"nvidia.com/gpu": "34", "cpu": "800", "memory": "8704Gi", "vpc.amazonaws.com/efa": "130"},
				"a100": {"nvidia.com/mig-1g.5gb": "14", "cpu": "24", "memory": "288Gi", "vpc.amazonaws.com/efa": "1"},
			},
		},
		"with unlimited borrowing": {
			v1alpha1.Sharing{Unlimited: true, BorrowLimits: []v1alpha1.QuotaRow{inPool("a100", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 7)})}},
			limits{
				"h100": nil,
				"a100": {"nvidia.com/mig-1g.5gb": "7", "cpu": "12", "memory": "144Gi", "vpc.amazonaws.com/efa": "1"},
			},
		},
		"in pools without quota, with a partition that no quota names": {
			v1alpha1.Sharing{BorrowLimitPercent: percent(0), BorrowLimits: []v1alpha1.QuotaRow{inPool("neuron", gpus(4)), row("ml.p5en.48xlarge", v1alpha1.Quantities{Partition: partition("mig-7g.141gb", 1)})}},
			limits{
				"h100":             {},
				"a100":             {},
				"ml.p5en.48xlarge": {"nvidia.com/mig-7g.141gb": "1", "cpu": "24", "memory": "256Gi", "vpc.amazonaws.com/efa": "2"},
				"neuron":           {"aws.amazon.com/neurondevice": "4", "cpu": "32", "memory": "128Gi", "vpc.amazonaws.com/efa": "2"},
			},
		},
		"lend only":   {v1alpha1.Sharing{Strategy: v1alpha1.Lend}, limits{"h100": {}, "a100": {}}},
		"do not lend": {v1alpha1.Sharing{Strategy: v1alpha1.DontLend}, limits{"h100": {}, "a100": {}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resolved, errs := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: own, Sharing: tc.sharing}, cluster())
			if len(errs) > 0 {
				t.Fatalf("got errors %v, want none", errs)
			}
			if resolved.Lends != (tc.sharing.Strategy != v1alpha1.DontLend) {
				t.Errorf("got Lends %t for strategy %q", resolved.Lends, tc.sharing.Strategy)
			}
			got := limits{}
			for _, p := range resolved.Pools {
				if got[p.Name] = nil; p.BorrowingLimit != nil {
					got[p.Name] = quantities(p.BorrowingLimit)
				}
				if p.BorrowOnly != (len(quantities(p.Nominal)) == 0) {
					t.Errorf("pool %s has BorrowOnly %t and quota %v", p.Name, p.BorrowOnly, quantities(p.Nominal))
				}
				for _, name := range resolved.Covered() {
					if _, counted := p.Nominal[name]; !counted {
						t.Errorf("pool %s has no quota of the covered resource %s", p.Name, name)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// A row with all accelerators of a pool of several types has all its physical
// resources.
func TestRowOfWholePool(t *testing.T) {
	for _, name := range []string{"h100", "a100"} {
		pool, _ := cluster().Named(name)
		filled, errs := quota.Fill(v1alpha1.Quantities{Accelerators: amount(int64(pool.Instance.Accelerators))}, pool.Instance)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if !maps.Equal(filled, quota.Resources(pool.Physical)) {
			t.Errorf("pool %s: got %v, want the physical %v", name, filled, pool.Physical)
		}
	}
}
