package explain

import (
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// Cohort is a Cohort with an object. Its quota is beside that of its queues, and its limits
// bound what its subtree borrows and lends.
type Cohort struct {
	Name   string
	Title  string // the words that name it for users
	Parent string // empty for the root
	Limits map[quota.FlavorResource]Limit
	Weight float64 // of fair sharing
}

// node is a ClusterQueue or a Cohort of a tree. All of its slices have the indices of the
// snapshot. The arithmetic is that of Kueue's resource_node.go.
type node struct {
	name   string
	title  string // of a Cohort
	parent *node  // nil for the root, and for a queue without a cohort
	above  bool   // an ancestor of the task's queue
	depth  int    // below the root
	height int    // of the subtree, of a Contest; 0 for a queue
	weight float64
	limits []Limit
	// subtree is the quota of the node and what its children lend to it, and usage what
	// counts against that: of a Cohort, the usage of its children that they have no local
	// quota for.
	subtree, usage []resources.Amount
}

// under sets the parent of a node without quota; nil is none.
func (n *node) under(parent *node) {
	if parent != nil {
		n.parent, n.depth = parent, parent.depth+1
	}
}

// localQuota returns the quota of the subtree that its parent never sees.
func (n *node) localQuota(i int) resources.Amount {
	if limit := n.limits[i].LendingLimit; limit != nil {
		return max(0, n.subtree[i].Minus(*limit))
	}
	return 0
}

// localAvailable returns the unused local quota.
func (n *node) localAvailable(i int) resources.Amount {
	return max(0, n.localQuota(i).Minus(n.usage[i]))
}

// lent returns what the node lends to its parent, and usedInParent what it uses of the
// parent's quota, including what it lends.
func (n *node) lent(i int) resources.Amount { return n.subtree[i].Minus(n.localQuota(i)) }
func (n *node) usedInParent(i int) resources.Amount {
	return max(0, n.usage[i].Minus(n.localQuota(i)))
}

// add adds quota and usage to the node and, as far as that concerns them, to its ancestors.
func (n *node) add(i int, quota, usage resources.Amount) {
	for ; n != nil && (quota != 0 || usage != 0); n = n.parent {
		lent, used := n.lent(i), n.usedInParent(i)
		n.subtree[i], n.usage[i] = n.subtree[i].Plus(quota), n.usage[i].Plus(usage)
		quota, usage = n.lent(i).Minus(lent), n.usedInParent(i).Minus(used)
	}
}

// setLimit gives a queue another limit.
func (n *node) setLimit(i int, to Limit) {
	lent, used, parent := n.lent(i), n.usedInParent(i), n.parent
	n.limits[i], n.subtree[i] = to, to.Nominal
	parent.add(i, n.lent(i).Minus(lent), n.usedInParent(i).Minus(used))
}

// available returns what the node can use now. It is negative if more is used than there is
// quota.
func (n *node) available(i int) resources.Amount {
	if n.parent == nil {
		return n.subtree[i].Minus(n.usage[i])
	}
	shared := n.parent.available(i)
	if limit := n.limits[i].BorrowingLimit; limit != nil {
		shared = min(shared, n.lent(i).Minus(n.usedInParent(i)).Plus(*limit))
	}
	return n.localAvailable(i).Plus(shared)
}

// potentialAvailable returns what the node can ever have.
func (n *node) potentialAvailable(i int) resources.Amount {
	if n.parent == nil {
		return n.subtree[i]
	}
	most := n.localQuota(i).Plus(n.parent.potentialAvailable(i))
	if limit := n.limits[i].BorrowingLimit; limit != nil {
		most = min(most, n.subtree[i].Plus(*limit))
	}
	return most
}

// has reports whether the subtree has quota for an amount beside its usage.
func (n *node) has(i int, amount resources.Amount) bool {
	return n.usage[i].Plus(amount) <= n.subtree[i]
}

// borrowing reports whether more is used than the quota of the subtree, of any of these.
func (n *node) borrowing(keys []int) bool {
	for _, i := range keys {
		if !n.has(i, 0) {
			return true
		}
	}
	return false
}

// lenderTo returns the lowest Cohort that the queue shares with the task's queue, if the queue
// and all Cohorts below that one use more than their quota, of any of these: quota of the
// task's queue or of its ancestors is among that. Otherwise it returns nil.
func (n *node) lenderTo(keys []int) *node {
	for ; n != nil && !n.above; n = n.parent {
		if !n.borrowing(keys) {
			return nil
		}
	}
	return n
}

// borrowable returns the unused quota of others that is lent to the node, if its borrowing
// limit and those of its ancestors allow that.
func (n *node) borrowable(i int) (sum resources.Amount) {
	if n.parent == nil {
		return 0
	}
	top := n.parent
	for ; top.parent != nil; top = top.parent {
		sum = sum.Plus(top.localAvailable(i))
	}
	sum = sum.Plus(top.subtree[i].Minus(top.usage[i]))
	return max(0, sum.Minus(max(0, n.lent(i).Minus(n.usedInParent(i))))) // less what it lends itself
}

// border returns the borrowing limit of an ancestor that decides what the node can use, now or
// ever, if that is less than needed; nil if another limit or the quota of all decides.
func (n *node) border(i int, needed resources.Amount, ever bool) (found *Border) {
	local, most := resources.Amount(0), resources.Unlimited // what the node has for itself so far, and what it can use at most
	for ; n.parent != nil; n = n.parent {
		borrowed, own := n.usedInParent(i).Minus(n.lent(i)), n.localAvailable(i)
		if ever {
			borrowed, own = max(0, n.lent(i)).Times(-1), n.localQuota(i)
		}
		local = local.Plus(own)
		limit := n.limits[i].BorrowingLimit
		if limit == nil || local.Minus(borrowed).Plus(*limit) >= most {
			continue
		}
		most, found = local.Minus(borrowed).Plus(*limit), nil
		if n.title != "" && most < needed {
			idle := max(0, borrowed.Times(-1))
			found = &Border{Cohort: n.title, Left: max(0, limit.Minus(max(0, borrowed))), Needed: needed.Minus(local).Minus(idle)}
		}
	}
	shared := n.subtree[i].Minus(n.usage[i])
	if ever {
		shared = n.subtree[i]
	}
	if local.Plus(shared) <= most {
		return nil
	}
	return found
}

// lowestWith returns the lowest subtree with the node that has quota for an amount more; nil
// if even the whole tree has not.
func (n *node) lowestWith(i int, amount resources.Amount) *node {
	for ; n != nil; n = n.parent {
		if n.has(i, amount) {
			return n
		}
		amount = amount.Minus(n.localAvailable(i))
	}
	return nil
}
