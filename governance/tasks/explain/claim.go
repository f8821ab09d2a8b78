package explain

import (
	"slices"
	"sort"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// Claim returns which of growth a waiting task is entitled to, as indices: the task fits
// once these are gone, and not before. growth is what pods of elastic tasks beyond their
// minimum use, in the order in which it is given back. A task is entitled to the growth of
// its own queue and to that of queues that borrow, within its queue's nominal quota or
// within that of a Cohort that such a queue is not in. nil if the task fits now, or does not
// fit without all growth either.
func Claim(t Task, c *Cluster, growth []*AdmittedWorkload) (claimed []int) {
	if _, stopped := checkPreconditions(t, c); stopped || uncoveredResource(t, c.Queue) != "" {
		return nil
	}
	all := demands(t, c)
	l := newSnapshot(c, all)
	if l.fitsNow(all) {
		return nil
	}
	take := func(may func(*AdmittedWorkload) bool) bool {
		for i, g := range growth {
			w := l.workload(g)
			if slices.Contains(claimed, i) || w.account == nil || !slices.ContainsFunc(w.usage, func(amount resources.Amount) bool { return amount > 0 }) || !may(g) {
				continue
			}
			l.removeUsage(w)
			if claimed = append(claimed, i); l.fitsNow(all) {
				return true
			}
		}
		return false
	}
	own := func(g *AdmittedWorkload) bool { return g.Queue == c.Queue.Name }
	borrowed := func(g *AdmittedWorkload) bool {
		lender := l.queues[g.Queue].lenderTo(l.all())
		return !own(g) && lender != nil && l.hasBelow(lender, all)
	}
	if !take(own) && !take(borrowed) {
		return nil
	}
	// The first ones may not be needed after all, as in Kueue's preemption.
	for i := len(claimed) - 2; i >= 0; i-- {
		w := l.workload(growth[claimed[i]])
		if l.addUsage(w); l.fitsNow(all) {
			claimed = slices.Delete(claimed, i, i+1)
		} else {
			l.removeUsage(w)
		}
	}
	return claimed
}

// all returns all indices of the snapshot.
func (l *snapshot) all() []int {
	keys := make([]int, len(l.index))
	for i := range keys {
		keys[i] = i
	}
	return keys
}

// hasBelow reports whether a subtree with the task's queue, below one of its ancestors, has
// quota for the task, in some flavor of each demand.
func (l *snapshot) hasBelow(ancestor *node, all []demand) bool {
	for _, d := range all {
		if !slices.ContainsFunc(d.flavors, func(m match) bool {
			need := quota.FlavorResourceQuantities{}
			d.add(need, m.flavor)
			for fr, amount := range need {
				if n := l.own.lowestWith(l.index[fr], amount); n == nil || n.depth <= ancestor.depth {
					return false
				}
			}
			return m.mismatch == ""
		}) {
			return false
		}
	}
	return true
}

// Room returns how many pods of a task's only pod set, at most count, Kueue would admit
// now as a task of their own, without a preemption and with nodes for all of them.
func Room(t Task, c *Cluster, count int32) int32 { return room(t, c, count, true) }

// QuotaRoom is Room without regard to nodes.
func QuotaRoom(t Task, c *Cluster, count int32) int32 { return room(t, c, count, false) }

// room returns how many pods fit, on nodes too if placed.
func room(t Task, c *Cluster, count int32, placed bool) int32 {
	if _, stopped := checkPreconditions(t, c); stopped || c.PodsNotReady > 0 || uncoveredResource(t, c.Queue) != "" {
		return 0
	}
	all := demands(t, c)
	l := newSnapshot(c, all)
	nodes := map[string]int64{} // pods that find a node, by flavor
	fits := func(pods int64) bool {
		for i := range all {
			all[i].pods = pods
		}
		need, failed := l.assignFlavors(all)
		if failed >= 0 || !placed {
			return failed < 0
		}
		for fr := range need {
			if _, known := nodes[fr.Flavor]; !known {
				nodes[fr.Flavor] = fit(t.PodSets[0], fr.Flavor, c.Flavors[fr.Flavor], c.Nodes).FittingPods
			}
			if nodes[fr.Flavor] < pods {
				return false
			}
		}
		return true
	}
	return int32(sort.Search(int(count), func(n int) bool { return !fits(int64(n) + 1) }))
}

// Fits reports whether Kueue would admit a task now without a preemption. Kueue does not
// look at nodes.
func Fits(t Task, c *Cluster) bool {
	if _, stopped := checkPreconditions(t, c); stopped || c.PodsNotReady > 0 || uncoveredResource(t, c.Queue) != "" {
		return false
	}
	all := demands(t, c)
	return newSnapshot(c, all).fitsNow(all)
}
