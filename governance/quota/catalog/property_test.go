package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var someTypes = []string{p5, p54xl, g5, "ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.trn1.32xlarge", "ml.c5.large", "lab.big", "lab.small", "Standard_X", ""}

func oneOf[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

// anyNode returns a node of a random type, in a random state.
func anyNode(random *rand.Rand) corev1.Node {
	capacity := list{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", catalog.GPU, catalog.Neuron, catalog.Network, "amd.com/gpu", "nvidia.com/mig-1g.5gb", "pods"} {
		if random.IntN(2) == 0 {
			capacity[name] = fmt.Sprint(random.IntN(100))
		}
	}
	n := with(node(oneOf(random, someTypes...), capacity), "team="+oneOf(random, "red", "blue"), "nvidia.com/gpu.product=NVIDIA-"+oneOf(random, "A100", "L4")+"-SXM")
	if random.IntN(4) > 0 {
		n = ready(n)
	}
	n.Spec.Unschedulable = random.IntN(5) == 0
	if random.IntN(4) == 0 {
		n.Labels["nvidia.com/mig.config"] = oneOf(random, "all-disabled", "all-1g.5gb")
		n.Labels["nvidia.com/mig.config.state"] = oneOf(random, "success", "pending")
	}
	return n
}

func anyPools(random *rand.Rand) []v1alpha1.Pool {
	var pools []v1alpha1.Pool
	for i := range random.IntN(6) {
		pools = append(pools, oneOf(random,
			byModel("", oneOf(random, "H100", "a100", "l4", "Trainium1")), byFamily("", oneOf(random, "ml.g5", "lab", "ml.p5")),
			byTypes("", oneOf(random, someTypes...), oneOf(random, someTypes...)), byLabel("", "team", oneOf(random, "red", "blue", "none")),
		))
		pools[i].Name = oneOf(random, "a", "b", "c", "d", "e", "f", "lab.big")
	}
	return pools
}

// Under any policy, every node is in exactly one pool, the sums of physical and
// ready resources are those without pools, and ready is at most physical.
func TestPoolsPartitionCluster(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 7))
		var nodes []corev1.Node
		var typed int64
		for range random.IntN(20) {
			nodes = append(nodes, anyNode(random))
			if nodes[len(nodes)-1].Labels[typeOf] != "" {
				typed++
			}
		}
		pools := append(anyPools(random), byLabel("red-rest", "team", "red"), byLabel("blue-rest", "team", "blue")) // the last two match every node without a type
		plain := of(slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool { return n.Labels[typeOf] == "" })...)
		untyped := under(pools[len(pools)-2:], slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool { return n.Labels[typeOf] != "" })...)
		grouped := under(pools, nodes...)

		if n, physical, available := totals(t, plain); n != typed {
			t.Errorf("seed %d: pools of types have %d nodes, want %d", seed, n, typed)
		} else {
			more, morePhysical, moreReady := totals(t, untyped)
			for name := range morePhysical {
				physical[name], available[name] = physical[name]+morePhysical[name], available[name]+moreReady[name]
			}
			got, gotPhysical, gotReady := totals(t, grouped)
			if got != int64(len(nodes)) || n+more != got {
				t.Errorf("seed %d: pools have %d nodes, want %d", seed, got, len(nodes))
			}
			if diff := cmp.Diff([]map[string]resources.Amount{physical, available}, []map[string]resources.Amount{gotPhysical, gotReady}); diff != "" {
				t.Errorf("seed %d: pools change the sums of physical and ready resources (-without +with):\n%s", seed, diff)
			}
		}
		counted := map[string]int64{}
		for i := range nodes {
			name := grouped.PoolOf(&nodes[i])
			counted[name]++
			if label := grouped.Label(&nodes[i]); label != "" && label != name {
				t.Errorf("seed %d: a node of pool %s is labeled %s", seed, name, label)
			}
		}
		for _, pool := range grouped.Pools() {
			if counted[pool.Name] != pool.Nodes {
				t.Errorf("seed %d: pool %s has %d nodes, want %d by PoolOf", seed, pool.Name, pool.Nodes, counted[pool.Name])
			}
		}
		for _, instanceType := range someTypes {
			if pool, ok := grouped.Pool(instanceType); ok == (len(grouped.Ambiguous(instanceType)) > 0) && instanceType != "" && slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Labels[typeOf] == instanceType }) {
				t.Errorf("seed %d: Pool(%q) returns %q, %t, and Ambiguous returns %v", seed, instanceType, pool.Name, ok, grouped.Ambiguous(instanceType))
			}
		}
		slices.Reverse(nodes)
		if diff := cmp.Diff(grouped.Pools(), under(pools, nodes...).Pools()); diff != "" {
			t.Errorf("seed %d: the result depends on the order of nodes:\n%s", seed, diff)
		}
		if t.Failed() {
			return
		}
	}
}

// totals returns the sums over all pools.
func totals(t *testing.T, c catalog.Catalog) (nodes int64, physical, ready map[string]resources.Amount) {
	t.Helper()
	physical, ready = map[string]resources.Amount{}, map[string]resources.Amount{}
	for _, pool := range c.Pools() {
		nodes += pool.Nodes
		for name, n := range pool.Physical {
			physical[name] += n
			ready[name] += pool.Ready[name]
			if pool.Ready[name] < 0 || pool.Ready[name] > n {
				t.Errorf("pool %s has %d ready of %d %s", pool.Name, pool.Ready[name], n, name)
			}
		}
		for name := range pool.Ready {
			if _, ok := pool.Physical[name]; !ok {
				t.Errorf("pool %s has ready %s that is not physical", pool.Name, name)
			}
		}
	}
	return nodes, physical, ready
}

// Kept figures only grow, and do not depend on the order of the nodes.
func TestKeptFiguresOnlyGrow(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 8))
		var kept []v1alpha1.ReportedType
		for range 5 {
			var nodes []corev1.Node
			for range random.IntN(6) {
				nodes = append(nodes, anyNode(random))
			}
			now := catalog.Reported(nodes, typeOf, kept)
			for _, was := range kept {
				i := slices.IndexFunc(now, func(r v1alpha1.ReportedType) bool { return r.InstanceType == was.InstanceType })
				if i < 0 {
					t.Fatalf("seed %d: %s is not kept", seed, was.InstanceType)
				}
				for name, q := range was.Capacity {
					if is := now[i].Capacity[name]; is.Cmp(q) < 0 {
						t.Fatalf("seed %d: %s of %s decreases from %s to %s", seed, name, was.InstanceType, q.String(), is.String())
					}
				}
			}
			slices.Reverse(nodes)
			if diff := cmp.Diff(now, catalog.Reported(nodes, typeOf, kept), cmp.Comparer(func(a, b resource.Quantity) bool { return a.String() == b.String() })); diff != "" {
				t.Fatalf("seed %d: the result depends on the order of nodes:\n%s", seed, diff)
			}
			kept = now
		}
	}
}
