package usage

import "kuota.dev/kuota/governance/quota/resources"

// Node is one resource of one node, in the units of quota.Resources.
type Node struct {
	Physical resources.Amount            // nominal
	Usable   resources.Amount            // usable now; at most Physical
	Requests map[string]resources.Amount // of pods of admitted tasks on the node, by team
	Outside  resources.Amount            // requests of all other pods on the node
}

// NodeUsage divides a node: Bound, Outside, Unhealthy and Idle add up to
// Physical.
type NodeUsage struct {
	Bound     map[string]resources.Amount // by team
	Outside   resources.Amount
	Unhealthy resources.Amount
	Idle      resources.Amount
}

// Usage divides the node. Requests of pods count first, in the order of the
// teams, up to Physical: pods can request more while a node changes, or if the
// node has more than its instance type.
func (n Node) Usage(teams []string) NodeUsage {
	left := n.Physical
	use := func(amount resources.Amount) resources.Amount {
		part := max(0, min(amount, left))
		left = left.Minus(part)
		return part
	}
	p := NodeUsage{Bound: make(map[string]resources.Amount, len(n.Requests))}
	for _, team := range teams {
		if amount := use(n.Requests[team]); amount > 0 {
			p.Bound[team] = amount
		}
	}
	p.Outside = use(n.Outside)
	used := n.Physical.Minus(left)
	p.Idle = use(max(0, n.Usable.Minus(used)))
	p.Unhealthy = left
	return p
}
