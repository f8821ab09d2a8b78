package explain

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// NodePod is a pod that has a node.
type NodePod struct {
	Node     string
	Requests quota.Resources
}

// Space is what is free on the nodes of a cluster once some pods have ended. It knows no
// topologies, and no affinity between pods.
type Space struct {
	nodes   []Node
	owned   []bool // nodes whose Free is this space's own
	flavors map[string]kueue.ResourceFlavorSpec
}

// NewSpace returns the space of a cluster as it is.
func NewSpace(c *Cluster) *Space {
	return &Space{nodes: slices.Clone(c.Nodes), owned: make([]bool, len(c.Nodes)), flavors: c.Flavors}
}

// maxPlaces is for how many pods a node has room at most, whatever it reports.
const maxPlaces = 1 << 16

// End frees what pods request.
func (s *Space) End(ended []NodePod) {
	for _, p := range ended {
		if i := slices.IndexFunc(s.nodes, func(n Node) bool { return n.Name == p.Node }); i >= 0 {
			s.add(i, p.Requests, 1)
		}
	}
}

// Start is a task that gets usage of flavors.
type Start struct {
	Sets  []PodSet
	Usage quota.FlavorResourceQuantities
}

// Certain reports whether the pods of a task find nodes wherever the scheduler places those
// of others before, and in whatever order. A pod takes the room of at most as many others
// as its requests exceed theirs, rounded up.
func (s *Space) Certain(t Start, before []Start) bool {
	for i := range t.Sets {
		set := &t.Sets[i]
		matching := s.matching(set, t.Usage)
		room := int64(0)
		for _, n := range matching {
			if s.nodes[n].Ready {
				room += s.places(n, set.Requests)
			}
		}
		take := func(of Start, except int) {
			for k := range of.Sets {
				other := &of.Sets[k]
				if k != except && slices.ContainsFunc(s.matching(other, of.Usage), func(n int) bool { return slices.Contains(matching, n) }) {
					room -= podsOf(other, of.Sets, of.Usage) * exceeds(other.Requests, set.Requests)
				}
			}
		}
		take(t, i)
		for _, other := range before {
			take(other, -1)
		}
		if room < podsOf(set, t.Sets, t.Usage) {
			return false
		}
	}
	return true
}

// WithoutNodes returns the flavors of a task in which no node takes its pods, ready or not:
// nodes may come, such as from an autoscaler.
func (s *Space) WithoutNodes(t Start) (names []string) {
	for i := range t.Sets {
		set := &t.Sets[i]
		if podsOf(set, t.Sets, t.Usage) == 0 || len(s.matching(set, t.Usage)) > 0 {
			continue
		}
		for _, of := range flavorsOf(set, t.Usage) {
			names = append(names, of...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// exceeds returns for how many pods with some requests one with others takes the room at
// most.
func exceeds(other, requests quota.Resources) int64 {
	most := resources.Amount(1) // a slot
	for name, each := range requests {
		if each > 0 {
			most = max(most, resources.Amount(other[name].Plus(each).Minus(1).Per(each)))
		}
	}
	return int64(min(most, maxPlaces))
}

// matching returns the nodes that the pods of a set may go to, whether ready or not.
func (s *Space) matching(set *PodSet, usage quota.FlavorResourceQuantities) (list []int) {
	flavors := flavorsOf(set, usage)
	for n := range s.nodes {
		if s.matches(n, set, flavors) {
			list = append(list, n)
		}
	}
	return list
}

// podsOf returns how many pods of a set have quota.
func podsOf(set *PodSet, all []PodSet, usage quota.FlavorResourceQuantities) int64 {
	if len(all) == 1 {
		return admittedPods(set, usage)
	}
	return int64(set.Count)
}

// add adds the requests of several pods to what is free on a node.
func (s *Space) add(n int, requests quota.Resources, times int64) {
	node := &s.nodes[n]
	if !s.owned[n] {
		node.Free, s.owned[n] = maps.Clone(node.Free), true
	}
	for name, each := range requests {
		node.Free[name] = node.Free[name].Plus(each.Times(times))
	}
	if _, counted := node.Allocatable[pods]; counted {
		node.Free[pods] = node.Free[pods].Plus(resources.Amount(times))
	}
}

// places returns for how many pods with such requests a node has room.
func (s *Space) places(n int, requests quota.Resources) int64 {
	node, most := &s.nodes[n], int64(maxPlaces)
	if _, counted := node.Allocatable[pods]; counted {
		most = min(most, int64(max(0, node.Free[pods])))
	}
	for name, each := range requests {
		if each > 0 {
			most = min(most, max(0, node.Free[name]).Per(each))
		}
	}
	return most
}

// matches reports whether a node has a flavor of each resource that the set requests, and
// takes its pods.
func (s *Space) matches(n int, set *PodSet, flavors map[string][]string) bool {
	if len(flavors) == 0 {
		return matchesNode(&s.nodes[n], set.Spec, kueue.ResourceFlavorSpec{})
	}
	for _, of := range flavors {
		if !slices.ContainsFunc(of, func(name string) bool { return matchesNode(&s.nodes[n], set.Spec, s.flavors[name]) }) {
			return false
		}
	}
	return true
}

// flavorsOf returns the flavors of each resource of a set in which the task has usage.
func flavorsOf(set *PodSet, usage quota.FlavorResourceQuantities) map[string][]string {
	found := map[string][]string{}
	for fr, amount := range usage {
		if amount > 0 && set.Counted()[fr.Resource] > 0 {
			found[fr.Resource] = append(found[fr.Resource], fr.Flavor)
		}
	}
	return found
}

// admittedPods returns how many pods of the only set of a task have quota.
func admittedPods(set *PodSet, usage quota.FlavorResourceQuantities) int64 {
	count, used := int64(set.Count), usage.ByResource()
	for name, each := range set.Counted() {
		if amount, known := used[name]; known && each > 0 {
			count = min(count, amount.Per(each))
		}
	}
	return count
}
