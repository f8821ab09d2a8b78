package usage

import "kuota.dev/kuota/governance/quota/resources"

// PoolUsage is the usage of one resource of one pool, in the units of
// quota.Resources. OwnBound, BorrowedBound, Outside, Unhealthy and Idle add up
// to Physical.
type PoolUsage struct {
	Physical            resources.Amount // nominal resources of all nodes, ready or not; the quota of what no node reports
	OwnBound            resources.Amount // requests of bound pods of admitted tasks, up to the nominal quota of their teams
	BorrowedBound       resources.Amount // the same, beyond it
	Outside             resources.Amount // requests of bound pods that Kueue does not manage
	Unhealthy           resources.Amount // unused, on unschedulable nodes or of missing devices
	Idle                resources.Amount // the rest
	Recovering          resources.Amount // Physical of nodes that are not ready
	Cordoned            resources.Amount // Physical of cordoned nodes
	Nominal             resources.Amount // nominal quota of all teams
	Usage               resources.Amount // of admitted tasks, bound or not
	Unbound             resources.Amount // usage of tasks without bound pods
	Borrowed            resources.Amount // usage beyond nominal quota
	Growth              resources.Amount // the part of Usage that is growth of elastic tasks, own or borrowed
	OwnGrowth           resources.Amount // the part of Growth that is not borrowed
	LentToCohort        resources.Amount // the part of Borrowed that teams lend, apportioned
	BorrowedUnallocated resources.Amount // the part of Borrowed from Unallocated
	BorrowedReserve     resources.Amount // the part of Borrowed from Reserve
	Unallocated         resources.Amount // not allocated to a team; can be borrowed
	Reserve             resources.Amount // allocated to Cohorts below that of Unallocated, and to no team of theirs
	LargestFree         resources.Amount // largest free amount of one node
}

// Overallocated returns by how much the nominal quota of teams and Cohorts exceeds the
// physical resources.
func (p PoolUsage) Overallocated() resources.Amount {
	return max(0, p.Nominal.Plus(p.Reserve).Minus(p.Physical))
}

// TeamUsage is the usage of one resource of one pool by one team.
type TeamUsage struct {
	Nominal       resources.Amount
	Usage         resources.Amount // of admitted tasks: Own and Borrowed
	Own           resources.Amount // usage up to Nominal
	Borrowed      resources.Amount
	Growth        resources.Amount // the part of Usage that is growth of elastic tasks, own or borrowed
	LentToCohort  resources.Amount // idle quota that other teams borrow, apportioned
	LentBound     resources.Amount // the part of LentToCohort that is in BorrowedBound of other teams, apportioned
	OwnBound      resources.Amount // requests of bound pods, up to Nominal
	BorrowedBound resources.Amount
	Unbound       resources.Amount // usage of tasks without bound pods
}

// Idle returns the nominal quota that the team neither uses nor lends.
func (s TeamUsage) Idle() resources.Amount {
	return max(0, s.Nominal.Minus(s.Own).Minus(s.LentToCohort))
}

// OwnGrowth returns the part of Growth that is not borrowed: growth borrows before the
// rest of the usage does.
func (s TeamUsage) OwnGrowth() resources.Amount { return max(0, s.Growth.Minus(s.Borrowed)) }

// Add adds another usage.
func (s *TeamUsage) Add(o TeamUsage) {
	s.Nominal = s.Nominal.Plus(o.Nominal)
	s.Usage = s.Usage.Plus(o.Usage)
	s.Own = s.Own.Plus(o.Own)
	s.Borrowed = s.Borrowed.Plus(o.Borrowed)
	s.Growth = s.Growth.Plus(o.Growth)
	s.LentToCohort = s.LentToCohort.Plus(o.LentToCohort)
	s.LentBound = s.LentBound.Plus(o.LentBound)
	s.OwnBound = s.OwnBound.Plus(o.OwnBound)
	s.BorrowedBound = s.BorrowedBound.Plus(o.BorrowedBound)
	s.Unbound = s.Unbound.Plus(o.Unbound)
}

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
