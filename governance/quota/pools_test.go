package quota_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func team(name, instanceType string, gpus int64) v1alpha1.ComputeAllocation {
	return v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: instanceType, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}},
	}
}

// Allocated is the quota that Kueue has or that the controller is about to apply.
func TestAllocated(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: "ml.g6.12xlarge"}}}
	types := catalog.New(catalog.Input{Nodes: []corev1.Node{node}, InstanceTypeLabel: catalog.InstanceTypeLabel})

	blocked := team("blocked", "ml.g6.12xlarge", 16)
	blocked.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBlocked}}
	// The spec is invalid, and its queue still has the quota applied last.
	invalidApplied := team("invalid-applied", "ml.none", 16)
	invalidApplied.Status.Quota = []v1alpha1.PoolQuota{{Pool: "ml.g6.12xlarge", Resources: []v1alpha1.ResourceQuota{{Name: catalog.GPU, Nominal: resource.MustParse("1")}}}}
	invalid := team("invalid", "ml.none", 16)

	all := []v1alpha1.ComputeAllocation{team("a", "ml.g6.12xlarge", 2), team("b", "ml.g6.12xlarge", 1), blocked, invalidApplied, invalid}
	if got := quota.Allocated(all, types, "")["ml.g6.12xlarge"][catalog.GPU]; got != 4 {
		t.Errorf("got %d allocated GPUs, want 2 + 1 + 1", got)
	}
	allocated := quota.Allocated(all, types, "a")
	if got := allocated["ml.g6.12xlarge"][catalog.GPU]; got != 2 {
		t.Errorf("got %d GPUs allocated to teams other than a, want 1 + 1", got)
	}
	own, _ := quota.Effective(&all[0], types)
	if excess := allocated.Exceeding(own.Pools, types); len(excess) != 0 {
		t.Errorf("got excess %v for 2 of 4 GPUs, want none", excess)
	}
	allocated.AddNominal(own)
	allocated.AddNominal(own)
	allocated.Add("ml.g6.12xlarge", quota.Resources{"example.com/license": 1000}) // which no node reports
	excess := allocated.Exceeding(own.Pools, types)
	if got, want := quota.DescribeExcess(excess), "ml.g6.12xlarge: 6 of 4 GPUs, 60 of 48 vCPU, 240 of 192 GiB and 3 of 1 network device allocated"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A limit of the policy refuses what raises a sum beyond it, and nothing else.
func TestRefused(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: "ml.g6.12xlarge"}}}
	types := catalog.New(catalog.Input{Nodes: []corev1.Node{node}, InstanceTypeLabel: catalog.InstanceTypeLabel})
	sum := func(instanceType string, gpus ...int64) quota.PoolResources {
		var all []v1alpha1.ComputeAllocation
		for _, n := range gpus {
			all = append(all, team("team", instanceType, n))
		}
		return quota.Allocated(all, types, "")
	}
	limit := func(pool string, percent int32) v1alpha1.OverAllocationLimit {
		return v1alpha1.OverAllocationLimit{Pool: pool, Percent: &percent}
	}
	const g6, planned = "ml.g6.12xlarge", "ml.p5.48xlarge"
	for name, tc := range map[string]struct {
		limits        []v1alpha1.OverAllocationLimit
		before, after quota.PoolResources
		want          string
	}{
		"no limit":               {nil, nil, sum(g6, 9000), ""},
		"as much as there is":    {[]v1alpha1.OverAllocationLimit{limit(g6, 0)}, nil, sum(g6, 2, 2), ""}, // 2 of 1 network device, by rounding
		"more":                   {[]v1alpha1.OverAllocationLimit{limit(g6, 0)}, sum(g6, 4), sum(g6, 4, 1), g6 + ": 5 of 4 GPUs, 60 of 48 vCPU and 240 of 192 GiB allocated"},
		"within":                 {[]v1alpha1.OverAllocationLimit{limit(g6, 25)}, sum(g6, 4), sum(g6, 5), ""},
		"of all pools":           {[]v1alpha1.OverAllocationLimit{limit("*", 25)}, nil, sum(g6, 6), g6 + ": 6 of 5 GPUs, 72 of 60 vCPU and 288 of 240 GiB allocated"},
		"a pool before all":      {[]v1alpha1.OverAllocationLimit{limit("*", 0), limit(g6, 50)}, nil, sum(g6, 6), ""},
		"more already, less":     {[]v1alpha1.OverAllocationLimit{limit(g6, 0)}, sum(g6, 8), sum(g6, 7), ""},
		"planned, without nodes": {[]v1alpha1.OverAllocationLimit{limit("*", 0)}, nil, sum(planned, 8), ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{OverAllocationLimits: tc.limits}}
			if got := strings.TrimPrefix(quota.DescribeRefused(quota.Refused(policy, tc.before, tc.after, types)), "more than the cluster policy lets all teams have: "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A pool has the partitions that its nodes report, and a pool of several types is
// compared as a whole.
func TestExcessByPool(t *testing.T) {
	partitioned := func(instanceType string, partitions string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: instanceType}}}
		n.Status.Capacity = corev1.ResourceList{"nvidia.com/mig-1g.10gb": resource.MustParse(partitions)}
		return n
	}
	types := catalog.New(catalog.Input{
		Nodes:             []corev1.Node{partitioned("ml.p4d.24xlarge", "4"), partitioned("ml.p4de.24xlarge", "6")},
		InstanceTypeLabel: catalog.InstanceTypeLabel,
		Pools:             []v1alpha1.Pool{{Name: "a100", Match: v1alpha1.PoolMatch{Accelerator: "A100"}}},
	})
	parts := team("parts", "ml.p4d.24xlarge", 0)
	parts.Spec.Quota[0].Quantities = v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 11}}
	whole := team("whole", "ml.p4de.24xlarge", 16)
	allocated := quota.Allocated([]v1alpha1.ComputeAllocation{parts, whole}, types, "")
	own, _ := quota.Effective(&parts, types)
	excess := allocated.Exceeding(own.Pools, types)
	if got, want := quota.DescribeExcess(excess), "a100: 210.857 of 192 vCPU, 2,530.285 of 2,304 GiB, 9 of 8 network devices and 11 of 10 mig-1g.10gb allocated"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
