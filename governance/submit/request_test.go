package submit

import (
	"math/rand/v2"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// poolOf returns a pool of a known instance type, with nodes of these allocatable
// resources.
func poolOf(instanceType string, nodes ...quota.Resources) QueuePool {
	instance, _ := catalog.Known(instanceType)
	return QueuePool{
		Pool:         catalog.Pool{Name: instanceType, Instance: instance, Types: []string{instanceType}, Nodes: int64(len(nodes))},
		NodeSelector: map[string]string{catalog.InstanceTypeLabel: instanceType}, Nodes: nodes,
	}
}

func p[T any](v T) *T { return &v }

func amount(text string) *resource.Quantity { return p(resource.MustParse(text)) }

// p5Node is the allocatable of a p5: the kubelet reserves some vCPU and memory.
var p5Node = quota.Resources{catalog.CPU: 179_970, catalog.Memory: 1_935_626 * catalog.MiB, catalog.GPU: 8, catalog.Network: 32}

func TestFill(t *testing.T) {
	const gib = catalog.GiB
	for name, tc := range map[string]struct {
		each v1alpha1.Quantities
		pods int32
		pool QueuePool
		want quota.Resources
	}{
		"empty is one accelerator":               {pods: 1, pool: poolOf("ml.p5.48xlarge", p5Node), want: quota.Resources{catalog.GPU: 1, catalog.CPU: 24_000, catalog.Memory: 256 * gib}},
		"empty is one vCPU without accelerators": {pods: 1, pool: poolOf("ml.c5.2xlarge"), want: quota.Resources{catalog.CPU: 1000, catalog.Memory: 2 * gib}},
		"several pods share the network":         {each: v1alpha1.Quantities{Accelerators: p(int64(2))}, pods: 4, pool: poolOf("ml.p5.48xlarge", p5Node), want: quota.Resources{catalog.GPU: 2, catalog.CPU: 48_000, catalog.Memory: 512 * gib, catalog.Network: 8}},
		"a share of one device is none":          {each: v1alpha1.Quantities{Accelerators: p(int64(1))}, pods: 4, pool: poolOf("ml.g6.12xlarge"), want: quota.Resources{catalog.GPU: 1, catalog.CPU: 12_000, catalog.Memory: 48 * gib}},
		"the node reserves some":                 {each: v1alpha1.Quantities{Accelerators: p(int64(8))}, pods: 1, pool: poolOf("ml.p5.48xlarge", p5Node), want: quota.Resources{catalog.GPU: 8, catalog.CPU: 179_000, catalog.Memory: 1890 * gib}},
		"set values stay":                        {each: v1alpha1.Quantities{Accelerators: p(int64(8)), VCPU: amount("192")}, pods: 1, pool: poolOf("ml.p5.48xlarge", p5Node), want: quota.Resources{catalog.GPU: 8, catalog.CPU: 192_000, catalog.Memory: 1890 * gib}},
		"a part of a GPU":                        {each: v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 7}}, pods: 1, pool: poolOf("ml.p5.48xlarge"), want: quota.Resources{"nvidia.com/mig-1g.10gb": 7, catalog.CPU: 24_000, catalog.Memory: 256 * gib}},
		"Neuron devices":                         {each: v1alpha1.Quantities{Accelerators: p(int64(16))}, pods: 2, pool: poolOf("ml.trn1.32xlarge"), want: quota.Resources{catalog.Neuron: 16, catalog.CPU: 128_000, catalog.Memory: 512 * gib, catalog.Network: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			got, wrong := Fill(tc.each, tc.pods, tc.pool)
			if len(wrong) > 0 || !cmp.Equal(got, tc.want) {
				t.Errorf("got errors %v (-want +got):\n%s", wrong, cmp.Diff(tc.want, got))
			}
		})
	}
}

// A single pod gets what quota.Fill returns, except for network devices, on nodes that
// reserve nothing.
func TestFillMatchesQuotaFill(t *testing.T) {
	types := catalog.KnownTypes()
	for range 3000 {
		pool := poolOf(types[rand.IntN(len(types))])
		var each v1alpha1.Quantities
		if rand.IntN(2) == 0 {
			each.Accelerators = p(rand.Int64N(20))
		}
		if rand.IntN(3) == 0 {
			each.VCPU = resource.NewMilliQuantity(rand.Int64N(300_000), resource.DecimalSI)
		}
		if rand.IntN(3) == 0 {
			each.Memory = resource.NewQuantity(rand.Int64N(3000*int64(catalog.GiB)), resource.BinarySI)
		}
		if cmp.Equal(each, v1alpha1.Quantities{}) {
			continue
		}
		want, wrongWant := quota.Fill(each, pool.Instance)
		got, wrong := Fill(each, 1, pool)
		if !cmp.Equal(wrong, wrongWant) {
			t.Fatalf("%s with %+v: %v, want %v", pool.Name, each, wrong, wrongWant)
		}
		for name, amount := range want {
			if name != catalog.Network && got[name] != amount {
				t.Fatalf("%s with %+v: %s is %d, want %d", pool.Name, each, name, got[name], amount)
			}
		}
	}
}

// As many filled-in pods as a node has accelerators fit on it.
func TestFilledPodsFillANode(t *testing.T) {
	for _, instanceType := range catalog.KnownTypes() {
		pool := poolOf(instanceType)
		n := pool.Instance.Accelerators
		if n == 0 {
			continue
		}
		got, wrong := Fill(v1alpha1.Quantities{Accelerators: p(int64(1))}, int32(n)+1, pool)
		if len(wrong) > 0 {
			t.Fatal(instanceType, wrong)
		}
		for name, whole := range quota.WholeInstance(pool.Instance) {
			if got[name]*n > whole {
				t.Errorf("%s: %d pods request %d of %d %s", instanceType, n, got[name]*n, whole, name)
			}
		}
	}
}

func TestLargestNode(t *testing.T) {
	small := quota.Resources{catalog.CPU: 4000, catalog.Memory: 16 * catalog.GiB}
	for name, tc := range map[string]struct{ each, want quota.Resources }{
		"the node with GPUs":                 {quota.Resources{catalog.GPU: 8}, p5Node},
		"the nearest if none":                {quota.Resources{catalog.GPU: 16, catalog.CPU: 1000}, p5Node},
		"the most of the requested resource": {quota.Resources{catalog.CPU: 1000}, p5Node},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LargestNode([]quota.Resources{small, p5Node}, tc.each)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if LargestNode(nil, quota.Resources{catalog.GPU: 1}) != nil {
		t.Error("got a largest node without nodes")
	}
}
