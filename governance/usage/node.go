package usage

// Node is one resource of one node, in the units of quota.Resources.
type Node struct {
	Physical int64            // nominal
	Usable   int64            // usable now; at most Physical
	Requests map[string]int64 // of pods of admitted tasks on the node, by team
	Outside  int64            // requests of all other pods on the node
}

// NodeUsage divides a node: Bound, Outside, Unhealthy and Idle add up to
// Physical.
type NodeUsage struct {
	Bound     map[string]int64 // by team
	Outside   int64
	Unhealthy int64
	Idle      int64
}

// Usage divides the node. Requests of pods count first, in the order of the
// teams, up to Physical: pods can request more while a node changes, or if the
// node has more than its instance type.
func (n Node) Usage(teams []string) NodeUsage {
	left := n.Physical
	use := func(amount int64) int64 {
		part := max(0, min(amount, left))
		left -= part
		return part
	}
	p := NodeUsage{Bound: make(map[string]int64, len(n.Requests))}
	for _, team := range teams {
		if amount := use(n.Requests[team]); amount > 0 {
			p.Bound[team] = amount
		}
	}
	p.Outside = use(n.Outside)
	used := n.Physical - left
	p.Idle = use(max(0, n.Usable-used))
	p.Unhealthy = left
	return p
}
