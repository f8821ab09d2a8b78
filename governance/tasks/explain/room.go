package explain

import "sort"

// Room returns how many pods of a task's only pod set, at most count, Kueue would admit
// now as a task of their own, without a preemption and with nodes for all of them.
func Room(t Task, c *Cluster, count int32) int32 {
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
		if failed >= 0 {
			return false
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
