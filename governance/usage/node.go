package usage

// Node is one resource of one node, in the units of quota.Resources.
type Node struct {
	Physical int64            // nominal
	Usable   int64            // of it, what can be used now; at most Physical
	Requests map[string]int64 // asked for by pods of admitted tasks on it, by team
	Outside  int64            // asked for by all other pods on it
}

// Parts is a node taken apart: Bound, Outside, Unhealthy and Idle add up to
// Physical.
type NodeUsage struct {
	Bound     map[string]int64 // by team
	Outside   int64
	Unhealthy int64
	Idle      int64
}

// Parts takes a node apart. What pods ask for counts first, in the order of the
// teams, and up to what there is: more is possible while a node changes, or where
// it has more than its type should have.
func (n Node) Usage(teams []string) NodeUsage {
	left := n.Physical
	take := func(amount int64) int64 {
		taken := max(0, min(amount, left))
		left -= taken
		return taken
	}
	p := NodeUsage{Bound: make(map[string]int64, len(n.Requests))}
	for _, team := range teams {
		if amount := take(n.Requests[team]); amount > 0 {
			p.Bound[team] = amount
		}
	}
	p.Outside = take(n.Outside)
	used := n.Physical - left
	p.Idle = take(max(0, n.Usable-used))
	p.Unhealthy = left
	return p
}
