package explain

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/quota"
)

// placement says why a task that has its quota has not all of its pods on nodes:
// Kueue counts quota, and the scheduler looks at nodes.
func placement(t Task, c *Cluster) Verdict {
	if t.Placed.Unplaced == 0 {
		if len(c.Ceilings) > 0 {
			return Verdict{Constraint: CeilingReached, Ceiling: &c.Ceilings[0]}
		}
		return Verdict{Constraint: Unplaced, Detail: t.Placed.Said}
	}
	v := Verdict{Constraint: Unplaced, Detail: t.Placed.Said}
	for _, set := range lacking(t) {
		for _, name := range t.Placed.Flavors[set.Name] {
			f := fit(set, name, c.Flavors[name], c.Nodes)
			switch {
			case f.Ready == 0:
				v.Constraint = NoNodes
			case f.TooSmall():
				v.Constraint = TooSmall
			case f.Fragmented():
				v.Constraint = Fragmented
			case f.Places == 0:
				v.Constraint = NodesFull
			default:
				continue
			}
			v.PodSet, v.Fit = set.Name, &f
			return v
		}
	}
	return v
}

// lacking are the pod sets of a task of which pods have no node. Pods are told
// apart by what they ask for: where that tells nothing, it may be any.
func lacking(t Task) []PodSet {
	var sets []PodSet
	for _, set := range t.PodSets {
		if slices.ContainsFunc(t.Placed.Asking, func(asks quota.Resources) bool { return maps.Equal(asks, set.Each) }) {
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return t.PodSets
	}
	return sets
}

// hopeless is how pods of a waiting task lack nodes that are large enough in
// every flavor that Kueue may give it: quota would start it, and no node take it.
// nil where one is, or where there are no nodes to tell by.
func hopeless(all []demand, c *Cluster) *Fit {
	for _, d := range all {
		var small *Fit
		for _, m := range d.flavors {
			if m.mismatch != "" {
				continue
			}
			f := fit(*d.set, m.flavor, c.Flavors[m.flavor], c.Nodes)
			if !f.TooSmall() {
				small = nil
				break
			}
			if small == nil || f.Largest > small.Largest {
				small = &f
			}
		}
		if small != nil {
			return small
		}
	}
	return nil
}
