package catalog_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	p5     = "ml.p5.48xlarge"
	p54xl  = "ml.p5.4xlarge"
	g5     = "ml.g5.2xlarge"
	typeOf = catalog.InstanceTypeLabel
)

func byModel(name, model string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{Accelerator: model}}
}

func byFamily(name, family string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{InstanceFamily: family}}
}

func byTypes(name string, types ...string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{InstanceTypes: types}}
}

func byLabel(name, key, value string) v1alpha1.Pool {
	return v1alpha1.Pool{Name: name, Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{key: value}}}
}

// with returns a copy of the node with more labels.
func with(n corev1.Node, labels ...string) corev1.Node {
	n = *n.DeepCopy()
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	return n
}

// The memory of a GPU is that of the table; of other types that of NVIDIA's label, the
// smallest of one type.
func TestAcceleratorMemory(t *testing.T) {
	gpu := map[corev1.ResourceName]string{catalog.GPU: "8"}
	for _, tc := range []struct {
		pool  string
		nodes []corev1.Node
		want  int64
	}{
		{"ml.p5.48xlarge", []corev1.Node{with(node("ml.p5.48xlarge", gpu), "nvidia.com/gpu.memory=1024")}, 80},
		{"lab.x", []corev1.Node{node("lab.x", gpu), with(node("lab.x", gpu), "nvidia.com/gpu.memory=143771"), with(node("lab.x", gpu), "nvidia.com/gpu.memory=81559")}, 80},
		{"lab.x", []corev1.Node{with(node("lab.x", gpu), "nvidia.com/gpu.memory=much")}, 0},
		{"lab.x", []corev1.Node{node("lab.x", gpu)}, 0},
	} {
		pool, ok := of(tc.nodes...).Find(tc.pool)
		if !ok || pool.Instance.AcceleratorMemory != tc.want {
			t.Errorf("%s: %d GB, want %d", tc.pool, pool.Instance.AcceleratorMemory, tc.want)
		}
	}
	untyped := with(node("", gpu), "nvidia.com/gpu.memory=40960", "rack=7")
	delete(untyped.Labels, catalog.InstanceTypeLabel)
	if pool, _ := under([]v1alpha1.Pool{byLabel("lab", "rack", "7")}, untyped).Find("lab"); pool.Instance.AcceleratorMemory != 40 {
		t.Errorf("a node without a type: %d GB, want 40", pool.Instance.AcceleratorMemory)
	}
}

// summary returns the main fields of a pool as one text.
func summary(p catalog.Pool) string {
	text := fmt.Sprintf("%s: %d of %s; %d accelerators, %d vCPU each", p.Name, p.Nodes, strings.Join(p.Types, " "), p.Instance.Accelerators, p.Instance.MilliCPU/1000)
	for _, mark := range []struct {
		on   bool
		word string
	}{{p.Grouped, "grouped"}, {p.Named, "named"}, {p.Split, "split"}} {
		if mark.on {
			text += ", " + mark.word
		}
	}
	return text
}

func TestPools(t *testing.T) {
	research := with(node(p5, nil), "team=research")
	unnamed := node("", map[corev1.ResourceName]string{"cpu": "10", "memory": "8Gi", "nvidia.com/gpu": "3"})
	cases := map[string]struct {
		pools         []v1alpha1.Pool
		nodes         []corev1.Node
		want          []string
		wantPoolOf    map[string]string   // pool of a row that names a type
		wantAmbiguous map[string][]string // pools by type
	}{
		"without a policy every type is a pool": {
			nodes:      []corev1.Node{node(p5, nil), node(g5, nil), node(p5, nil)},
			want:       []string{"ml.g5.2xlarge: 1 of ml.g5.2xlarge; 1 accelerators, 8 vCPU each", "ml.p5.48xlarge: 2 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each"},
			wantPoolOf: map[string]string{p5: p5, g5: g5, p54xl: p54xl, "ml.none": "", "": ""},
		},
		"by model, several types are one pool with their sums": {
			pools:      []v1alpha1.Pool{byModel("h100", "h100")},
			nodes:      []corev1.Node{node(p5, nil), node(p54xl, nil), node(g5, nil), node(p5, nil)},
			want:       []string{"h100: 3 of ml.p5.48xlarge ml.p5.4xlarge; 17 accelerators, 400 vCPU each, grouped, named", "ml.g5.2xlarge: 1 of ml.g5.2xlarge; 1 accelerators, 8 vCPU each"},
			wantPoolOf: map[string]string{p5: "h100", p54xl: "h100", g5: g5},
		},
		"a named pool of one type has the figures of one instance": {
			pools:      []v1alpha1.Pool{byModel("h100", "H100")},
			nodes:      []corev1.Node{node(p5, nil), node(p5, nil)},
			want:       []string{"h100: 2 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named"},
			wantPoolOf: map[string]string{p5: "h100", p54xl: "h100"},
		},
		"a named pool without nodes has one of each type it would match": {
			pools:      []v1alpha1.Pool{byModel("h100", "H100"), byTypes("a10", g5), byLabel("later", "team", "later")},
			want:       []string{"a10: 0 of ml.g5.2xlarge; 1 accelerators, 8 vCPU each, named", "h100: 0 of ml.p5.48xlarge ml.p5.4xlarge; 9 accelerators, 208 vCPU each, grouped, named", "later: 0 of ; 0 accelerators, 0 vCPU each, named"},
			wantPoolOf: map[string]string{p5: "h100", g5: "a10", "ml.g5.4xlarge": "ml.g5.4xlarge"},
		},
		"the first match wins": {
			pools:      []v1alpha1.Pool{byTypes("big", p5), byModel("h100", "H100")},
			nodes:      []corev1.Node{node(p5, nil)},
			want:       []string{"big: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named", "h100: 0 of ml.p5.4xlarge; 1 accelerators, 16 vCPU each, named"},
			wantPoolOf: map[string]string{p5: "big", p54xl: "h100"},
		},
		"by family": {
			pools:      []v1alpha1.Pool{byFamily("a10", "ml.g5")},
			nodes:      []corev1.Node{node(g5, nil), node("ml.g5.12xlarge", nil), node("ml.g5x.large", nil)},
			want:       []string{"a10: 2 of ml.g5.12xlarge ml.g5.2xlarge; 5 accelerators, 56 vCPU each, grouped, named", "ml.g5x.large: 1 of ml.g5x.large; 0 accelerators, 0 vCPU each"},
			wantPoolOf: map[string]string{g5: "a10", "ml.g5.xlarge": "a10"},
		},
		"labels split a type, and a row that names it is in the type's own pool": {
			pools:      []v1alpha1.Pool{byLabel("research", "team", "research")},
			nodes:      []corev1.Node{research, node(p5, nil)},
			want:       []string{"ml.p5.48xlarge: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, split", "research: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named, split"},
			wantPoolOf: map[string]string{p5: p5},
		},
		"a type with all nodes in a pool by label belongs to it": {
			pools:      []v1alpha1.Pool{byLabel("research", "team", "research")},
			nodes:      []corev1.Node{research},
			want:       []string{"research: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named"},
			wantPoolOf: map[string]string{p5: "research"},
		},
		"a type in two named pools is ambiguous": {
			pools:         []v1alpha1.Pool{byLabel("research", "team", "research"), byModel("h100", "H100")},
			nodes:         []corev1.Node{research, node(p5, nil), node(p54xl, nil)},
			want:          []string{"h100: 2 of ml.p5.48xlarge ml.p5.4xlarge; 9 accelerators, 208 vCPU each, grouped, named", "research: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named, split"},
			wantPoolOf:    map[string]string{p5: "", p54xl: "h100"},
			wantAmbiguous: map[string][]string{p5: {"h100", "research"}, p54xl: nil},
		},
		"an empty pool does not select the nodes of another": {
			pools:      []v1alpha1.Pool{byLabel("research", "team", "research"), byTypes("rest", p5)},
			nodes:      []corev1.Node{research},
			want:       []string{"research: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named", "rest: 0 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each, named, split"},
			wantPoolOf: map[string]string{p5: "research"},
		},
		"nodes without a type count as they report": {
			pools: []v1alpha1.Pool{byLabel("lab", "rack", "7")},
			nodes: []corev1.Node{with(unnamed, "rack=7"), with(unnamed, "rack=7"), unnamed},
			want:  []string{"lab: 2 of ; 6 accelerators, 20 vCPU each, grouped, named"},
		},
		"a pool named like a type is left out": {
			pools:      []v1alpha1.Pool{byModel(p5, "H100"), byModel("lab", "H100")},
			nodes:      []corev1.Node{node(p5, nil), node("lab", nil)},
			want:       []string{"lab: 1 of lab; 0 accelerators, 0 vCPU each", "ml.p5.48xlarge: 1 of ml.p5.48xlarge; 8 accelerators, 192 vCPU each"},
			wantPoolOf: map[string]string{p5: p5, "lab": "lab"},
		},
		"the product label of other types is searched for the model": {
			pools: []v1alpha1.Pool{byModel("h100", "H100"), byModel("a10", "A10")},
			nodes: []corev1.Node{with(node("lab.x", nil), "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"), node("lab.x", nil), with(node("lab.y", nil), "nvidia.com/gpu.product=NVIDIA A10G")},
			want:  []string{"a10: 0 of ; 0 accelerators, 0 vCPU each, named", "h100: 2 of lab.x; 0 accelerators, 0 vCPU each, named", "lab.y: 1 of lab.y; 0 accelerators, 0 vCPU each"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := under(tc.pools, tc.nodes...)
			var got []string
			for _, p := range c.Pools() {
				got = append(got, summary(p))
				if found, ok := c.Find(p.Name); !ok || found.Nodes != p.Nodes {
					t.Errorf("Find(%q) returns %+v, %t", p.Name, found, ok)
				}
				if _, named := c.Named(p.Name); named != p.Named {
					t.Errorf("Named(%q) reports %t, want %t", p.Name, named, p.Named)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			for instanceType, want := range tc.wantPoolOf {
				if pool, ok := c.Pool(instanceType); pool.Name != want && ok || ok != (want != "") {
					t.Errorf("Pool(%q) returns %q, %t; want %q", instanceType, pool.Name, ok, want)
				}
			}
			for instanceType, want := range tc.wantAmbiguous {
				if diff := cmp.Diff(want, c.Ambiguous(instanceType)); diff != "" {
					t.Errorf("Ambiguous(%q) (-want +got):\n%s", instanceType, diff)
				}
			}
		})
	}
}

// With any pools, the flavor of a node's pool selects the node, once it has its
// label, and no other flavor does.
func TestFlavorsSelectTheirOwnNodes(t *testing.T) {
	nodes := []corev1.Node{
		node(p5, nil), with(node(p5, nil), "team=research"), node(p54xl, nil), node(g5, nil), with(node("", nil), "team=research"), node("Standard_X", nil),
	}
	for name, pools := range map[string][]v1alpha1.Pool{
		"none":                  nil,
		"labels first":          {byLabel("research", "team", "research"), byModel("h100", "H100")},
		"labels last":           {byModel("h100", "H100"), byLabel("research", "team", "research")},
		"an empty pool":         {byLabel("research", "team", "research"), byTypes("rest", p5), byTypes("never", g5, "ml.g5.4xlarge")},
		"by types":              {byTypes("odd", g5, p5)},
		"types without a label": {byFamily("std", "Standard_X"), byTypes("azure", "Standard_X")},
	} {
		t.Run(name, func(t *testing.T) {
			c := under(pools, nodes...)
			labels := make([]map[string]string, len(nodes))
			for i := range nodes {
				labels[i] = maps.Clone(nodes[i].Labels)
				if pool := c.Label(&nodes[i]); pool != "" {
					labels[i][catalog.PoolLabel] = pool
				}
			}
			for _, pool := range append(c.Pools(), must(c.Find(p5)), must(c.Find("ml.c5.large"))) {
				selects := pool.Selects(typeOf)
				for i := range nodes {
					selected := true
					for key, value := range selects {
						selected = selected && labels[i][key] == value
					}
					if own := c.PoolOf(&nodes[i]) == pool.Name; own != selected {
						t.Errorf("node %d %v: flavor %s with %v selects it: %t, want %t", i, labels[i], pool.Name, selects, selected, own)
					}
				}
			}
		})
	}
}

func must(pool catalog.Pool, ok bool) catalog.Pool {
	if !ok {
		panic("no such pool")
	}
	return pool
}

func TestClashes(t *testing.T) {
	c := of(node("lab", nil), node("Standard_X", nil))
	renamed, _ := c.Pool("Standard_X")
	for name, p := range map[string]v1alpha1.Pool{
		"a type of the table": byModel("ml.g5.2xlarge", "A10G"),
		"a type of a node":    byModel("lab", "A10G"),
		"a type's pool":       byModel(renamed.Name, "A10G"),
		"Kuota's label":       byLabel("own", catalog.PoolLabel, "own"),
	} {
		if c.Clashes(p) == "" {
			t.Errorf("%s is accepted, want it rejected", name)
		}
	}
	if problem := c.Clashes(byModel("h100", "H100")); problem != "" {
		t.Errorf("h100: got %q, want it accepted", problem)
	}
}

// GPUs and Neuron devices are never summed.
func TestMixedAcceleratorsAreNotSummed(t *testing.T) {
	c := under([]v1alpha1.Pool{byTypes("all", p5, "ml.trn1.32xlarge", g5)}, node(p5, nil), node("ml.trn1.32xlarge", nil))
	pool, _ := c.Named("all")
	if pool.Instance.Accelerators != 0 || len(pool.Mixed) != 2 || pool.Physical[catalog.GPU] != 8 || pool.Physical[catalog.Neuron] != 16 {
		t.Errorf("got pool %+v", pool)
	}
}
