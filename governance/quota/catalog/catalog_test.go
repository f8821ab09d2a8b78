package catalog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func node(instanceType string, capacity map[corev1.ResourceName]string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{catalog.InstanceTypeLabel: instanceType}}}
	n.Status.Capacity = corev1.ResourceList{}
	for name, amount := range capacity {
		n.Status.Capacity[name] = resource.MustParse(amount)
	}
	return n
}

// of returns the catalog of these nodes under a policy without pools.
func of(nodes ...corev1.Node) catalog.Catalog { return under(nil, nodes...) }

// under returns the catalog of these nodes under a policy with these pools.
func under(pools []v1alpha1.Pool, nodes ...corev1.Node) catalog.Catalog {
	return catalog.New(catalog.Input{Nodes: nodes, InstanceTypeLabel: catalog.InstanceTypeLabel, Pools: pools})
}

func TestTable(t *testing.T) {
	if n := len(catalog.KnownTypes()); n != 201 {
		t.Errorf("the table has %d types, want 201", n)
	}
	for name, want := range map[string]catalog.Instance{
		"ml.p5.48xlarge":   {MilliCPU: 192_000, Memory: 2048 * catalog.GiB, Accelerators: 8, AcceleratorResource: catalog.GPU, AcceleratorModel: "H100", AcceleratorMemory: 80, NetworkDevices: 32},
		"ml.trn1.32xlarge": {MilliCPU: 128_000, Memory: 512 * catalog.GiB, Accelerators: 16, AcceleratorResource: catalog.Neuron, AcceleratorModel: "Trainium1", AcceleratorMemory: 32, NetworkDevices: 8},
		"ml.c5.2xlarge":    {MilliCPU: 8_000, Memory: 16 * catalog.GiB},
	} {
		got, ok := catalog.Known(name)
		got.Type, got.Partitions = "", nil
		if !ok || got.MilliCPU != want.MilliCPU || got.Memory != want.Memory || got.Accelerators != want.Accelerators ||
			got.AcceleratorResource != want.AcceleratorResource || got.AcceleratorModel != want.AcceleratorModel ||
			got.AcceleratorMemory != want.AcceleratorMemory || got.NetworkDevices != want.NetworkDevices {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	for _, name := range catalog.KnownTypes() {
		i, _ := catalog.Known(name)
		if i.MilliCPU <= 0 || i.Memory <= 0 || i.Accelerators < 0 || (i.Accelerators > 0) != (i.AcceleratorResource != "") {
			t.Errorf("%s has invalid figures: %+v", name, i)
		}
	}
}

// A node with a defect does not lower the figures of its type: those are from the
// table or, for other types, the largest that a node reports.
func TestDefectiveNodesLowerNothing(t *testing.T) {
	c := of(
		node("ml.p5.48xlarge", map[corev1.ResourceName]string{"cpu": "190", "memory": "2000Gi", "nvidia.com/gpu": "7"}),
		node("ml.p5.48xlarge", map[corev1.ResourceName]string{"cpu": "192", "memory": "2048Gi", "nvidia.com/gpu": "9"}),
		node("lab.big", map[corev1.ResourceName]string{"cpu": "64", "memory": "500Gi", "amd.com/gpu": "4"}),
		node("lab.big", map[corev1.ResourceName]string{"cpu": "63", "memory": "512Gi", "amd.com/gpu": "0"}),
		node("", map[corev1.ResourceName]string{"cpu": "8"}),
	)
	p5, _ := c.Pool("ml.p5.48xlarge")
	if p5.Nodes != 2 || p5.Instance.Accelerators != 8 || p5.Instance.MilliCPU != 192_000 {
		t.Errorf("got pool p5 %+v", p5)
	}
	lab, ok := c.Pool("lab.big")
	if !ok || lab.Nodes != 2 || lab.Instance.MilliCPU != 64_000 || lab.Instance.Memory != 512*catalog.GiB || lab.Instance.Accelerators != 4 || lab.Instance.AcceleratorResource != "amd.com/gpu" {
		t.Errorf("got pool lab.big %+v", lab)
	}
	if pools := c.Pools(); len(pools) != 2 || pools[0].Name != "lab.big" {
		t.Errorf("got pools %+v", pools)
	}
	if none, ok := c.Pool("ml.g5.2xlarge"); !ok || none.Nodes != 0 {
		t.Errorf("got pool %+v, %t for a type of the table without nodes", none, ok)
	}
	if _, ok := c.Pool("ml.none"); ok {
		t.Error("got a pool for an unknown type")
	}
}

func TestSimilarTypes(t *testing.T) {
	c := of(node("lab.big", nil))
	for mistyped, want := range map[string]string{
		"ml.p5.48xlage": "ml.p5.48xlarge", "p5.48xlarge": "ml.p5.48xlarge", "ml.trn1": "ml.trn1.32xlarge", "lab.bgi": "lab.big", "ML.P5.48XLARGE": "ml.p5.48xlarge", "h200": "ml.p5e.48xlarge",
	} {
		if got := c.SimilarTypes(mistyped); !slices.Contains(got, want) || len(got) > 3 {
			t.Errorf("types similar to %s: got %v, want at most three with %s", mistyped, got, want)
		}
	}
	for _, unknown := range []string{"", "something-else-altogether", string(make([]byte, 100_000))} {
		if got := c.SimilarTypes(unknown); len(got) != 0 {
			t.Errorf("types similar to %.30q: got %v, want none", unknown, got)
		}
	}
}

// Types that the cluster has come before those that it does not have, except types
// at an edit distance of one.
func TestSimilarTypesPrefersNodes(t *testing.T) {
	c := of(node("ml.c5.xlarge", nil), node("ml.g5.8xlarge", nil))
	for mistyped, want := range map[string]string{"ml.c5": "ml.c5.xlarge", "a10g": "ml.g5.8xlarge", "ml.g5.4xlarg": "ml.g5.4xlarge"} {
		if got := c.SimilarTypes(mistyped); len(got) == 0 || got[0] != want {
			t.Errorf("types similar to %s: got %v, want %s first", mistyped, got, want)
		}
	}
}

// The pool of a type that is no valid object name gets a valid and unique name.
func TestPoolNames(t *testing.T) {
	c := of(node("Standard_ND96asr_v4", nil), node("standard.nd96asr.v4", nil), node("STANDARD_ND96ASR_V4", nil), node("___", nil))
	seen := map[string]bool{}
	for _, pool := range c.Pools() {
		if len(validation.IsDNS1123Subdomain(pool.Name)) != 0 || seen[pool.Name] {
			t.Errorf("type %s: got pool name %s, want it valid and unique", pool.Instance.Type, pool.Name)
		}
		seen[pool.Name] = true
	}
	if pool, ok := c.Pool("standard.nd96asr.v4"); !ok || pool.Name != "standard.nd96asr.v4" {
		t.Errorf("a valid name was changed: %+v", pool)
	}
	if len(seen) != 4 {
		t.Errorf("got pools %v, want 4", seen)
	}
}

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

func TestResourceKinds(t *testing.T) {
	resources.List([]v1alpha1.ListedResource{{Name: "google.com/tpu", Label: "TPUs", Accelerator: true}, {Name: "ephemeral-storage", Label: "scratch space"}, {Name: "gpu.memory", Label: "GPU memory", Unit: v1alpha1.UnitBytes}})
	t.Cleanup(func() { resources.List(nil) })
	for resource, want := range map[string]string{
		"cpu": "quota", "memory": "quota bytes", "vpc.amazonaws.com/efa": "quota", "nvidia.com/gpu": "quota accelerator", "aws.amazon.com/neurondevice": "quota accelerator",
		"amd.com/gpu": "quota accelerator", "gpu.intel.com/xe": "quota accelerator", "nvidia.com/mig-1g.5gb": "quota accelerator", "nvidia.com/mig-1g.24gb.me.all": "quota accelerator",
		"google.com/tpu": "quota accelerator", "ephemeral-storage": "quota bytes", "gpu.memory": "quota bytes",
		"nvidia.com/gpu.shared": "", "aws.amazon.com/neuroncore": "", "pods": "", "hugepages-2Mi": "bytes", "rdma/hca": "",
	} {
		got := ""
		for _, kind := range []struct {
			word string
			is   bool
		}{{"quota", catalog.IsQuotaResource(resource)}, {"accelerator", catalog.IsAccelerator(resource)}, {"bytes", resources.InBytes(resource)}} {
			if kind.is {
				got = strings.TrimSpace(got + " " + kind.word)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}

// Of what the policy lists, a pool has what its nodes report as allocatable: an accelerator
// counts as one, and a license that no node reports is limited by no node.
func TestListedResources(t *testing.T) {
	resources.List([]v1alpha1.ListedResource{{Name: "google.com/tpu", Label: "TPUs", Accelerator: true}, {Name: "ephemeral-storage", Label: "scratch space"}, {Name: "example.com/license", Label: "licenses"}})
	t.Cleanup(func() { resources.List(nil) })
	tpus := ready(node("ct5lp-hightpu-4t", list{"cpu": "112", "memory": "192Gi", "google.com/tpu": "4", "ephemeral-storage": "400Gi", "example.com/nic": "1"}))
	tpus.Status.Allocatable = maps.Clone(tpus.Status.Capacity)
	tpus.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("360Gi")
	c := catalog.New(catalog.Input{Nodes: []corev1.Node{tpus}, InstanceTypeLabel: typeOf})
	pool, ok := c.Pool("ct5lp-hightpu-4t")
	if !ok || pool.Instance.AcceleratorResource != "google.com/tpu" || pool.Instance.Accelerators != 4 {
		t.Fatalf("got instance %+v, want 4 TPUs", pool.Instance)
	}
	if pool.Physical["google.com/tpu"] != 4 || pool.Ready["ephemeral-storage"] != 360*catalog.GiB || pool.Physical["example.com/nic"] != 0 {
		t.Errorf("got %v", pool.Physical)
	}
	if got := c.Unlisted(); !slices.Equal(got, []string{"example.com/nic"}) {
		t.Errorf("got unlisted %v", got)
	}
	for resource, want := range map[string]bool{"google.com/tpu": true, "ephemeral-storage": true, "example.com/license": false, catalog.GPU: true} {
		if got := c.OnNodes(resource); got != want {
			t.Errorf("%s is limited by nodes: got %t, want %t", resource, got, want)
		}
	}
}
