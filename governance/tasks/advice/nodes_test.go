package advice_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// cluster is random teams on a few nodes with few slots, whose running tasks have their
// pods on nodes.
func cluster(random *rand.Rand) *given {
	g := newGiven()
	g.cluster.Nodes = []explain.Node{}
	for range 1 + random.IntN(6) {
		g.nodes(1, resources.Amount(1+random.IntN(8)))
		n := &g.cluster.Nodes[len(g.cluster.Nodes)-1]
		n.Allocatable["pods"], n.Ready = resources.Amount(1+random.IntN(4)), random.IntN(10) > 0
		n.Free = maps.Clone(n.Allocatable)
	}
	for i := range 2 + random.IntN(2) {
		team := fmt.Sprint("team-", i)
		g.team(team, resources.Amount(random.IntN(12)), resources.Amount(random.IntN(6)))
		left := g.cluster.Queues[team].Limits[fr].Nominal
		for k := range random.IntN(4) {
			gpus := resources.Amount(1 + random.IntN(4))
			if left = left.Minus(gpus); left < 0 {
				break
			}
			g.running(team, fmt.Sprint("runs-", k), int64(gpus), int32(10+10*random.IntN(10)), time.Duration(60-k)*time.Minute)
			if node := emptiest(g.cluster.Nodes, gpus, random); node >= 0 {
				g.bind(node, gpus)
			}
		}
		for k := range random.IntN(3) {
			ofRandomKind(g.task(team, fmt.Sprint("ahead-", k), int32(1+random.IntN(3)), int64(1+random.IntN(4)), int32(10+10*random.IntN(10)), time.Duration(30-k)*time.Minute), random)
		}
	}
	return g
}

// ofRandomKind changes a task with equal pods into one of which fewer pods may start, or one
// with two sets of pods, as of a JobSet: the pods of the second may request no GPU.
func ofRandomKind(w *kueue.Workload, random *rand.Rand) *kueue.Workload {
	main := &w.Spec.PodSets[0]
	switch random.IntN(3) {
	case 1:
		main.MinCount = ptr.To(1 + random.Int32N(main.Count))
	case 2:
		other := *main.DeepCopy()
		other.Name, other.Count = "other", 1+random.Int32N(3)
		other.Template.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(random.Int64N(4), resource.DecimalSI)
		w.Spec.PodSets = append(w.Spec.PodSets, other)
	}
	return w
}

// emptiest returns a node with room for a pod, one of those with the most free slots; -1
// for none.
func emptiest(nodes []explain.Node, gpus resources.Amount, random *rand.Rand) int {
	best := -1
	for _, i := range random.Perm(len(nodes)) {
		if n := nodes[i]; n.Ready && n.Free[gpu] >= gpus && n.Free["pods"] >= 1 && (best < 0 || n.Free["pods"] > nodes[best].Free["pods"]) {
			best = i
		}
	}
	return best
}

// No change is called verified that leaves a pod of the task without a node, of waiting tasks
// of random kinds on nodes with few slots. make truth prints how many are.
func TestVerifiedOnNodes(t *testing.T) {
	seeds := 50
	if os.Getenv("KUOTA_VERIFY") != "" {
		seeds = 1000
	}
	verified, wrong := 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 39))
		g := cluster(random)
		waiting := ofRandomKind(g.task("team-0", "waits", int32(1+random.IntN(6)), int64(1+random.IntN(5)), int32(10+10*random.IntN(10)), time.Minute), random)
		for _, c := range g.find(t, waiting).Changes {
			if !c.Verified {
				continue
			}
			verified++
			for range 3 {
				if left := g.unplaced(waiting, c.Question, c.Effects, random); left > 0 {
					wrong++
					t.Errorf("seed %d: %+v leaves %d pods without a node", seed, c.Change, left)
					break
				}
			}
		}
	}
	fmt.Printf("figure truth_unplaced %d of %d verified changes leave a pod without a node, of %d waiting tasks\n", wrong, verified, seeds)
	if verified < seeds/10 {
		t.Errorf("only %d changes were offered", verified)
	}
}

// unplaced returns how many pods of a task find no node after a change.
func (g *given) unplaced(target *kueue.Workload, q *simulate.Question, r *simulate.Report, random *rand.Rand) (left int) {
	nodes := slices.Clone(g.cluster.Nodes)
	for i := range nodes {
		nodes[i].Free = maps.Clone(nodes[i].Free)
	}
	for _, w := range g.snapshot.Workloads {
		gone := func(e simulate.Effect) bool { return e.Workload == simulate.WorkloadKey(w) }
		removed := false
		for _, name := range q.Change.Removed.Workloads {
			removed = removed || name.Namespace == w.Namespace && name.Name == w.Name
		}
		if !removed && !slices.ContainsFunc(r.Preempted, gone) && !slices.ContainsFunc(r.Evicted, gone) {
			continue
		}
		for _, p := range g.pods[w.UID] {
			i := slices.IndexFunc(nodes, func(n explain.Node) bool { return n.Name == p.Node })
			nodes[i].Free.Add(p.Requests)
			nodes[i].Free.Add(quota.Resources{"pods": 1})
		}
	}
	place := func(e simulate.Effect, sets []explain.PodSet) (without int) {
		for _, set := range sets {
			each, count := set.Requests[gpu], int64(set.Count)
			if len(sets) == 1 { // fewer pods may start
				count = int64(e.Usage[fr].Per(each))
			}
			for range count {
				at := emptiest(nodes, each, random)
				if at < 0 {
					without++
					continue
				}
				nodes[at].Free[gpu], nodes[at].Free["pods"] = nodes[at].Free[gpu].Minus(each), nodes[at].Free["pods"].Minus(1)
			}
		}
		return without
	}
	for _, e := range r.Started {
		if e.Workload == r.Target.Workload {
			return place(e, g.Sets(target))
		}
		for _, w := range g.snapshot.Workloads {
			if simulate.WorkloadKey(w) == e.Workload {
				place(e, g.Sets(w))
			}
		}
	}
	return 0
}
