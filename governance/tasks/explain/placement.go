package explain

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
	for _, set := range t.PodSets {
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

// hopeless is how pods of a waiting task lack nodes that are large enough in
// every flavor that Kueue may give it: quota would start it, and no node take it.
// nil where one is, or where there are no nodes to tell by.
func hopeless(t Task, c *Cluster) *Fit {
	for _, set := range t.PodSets {
		var small *Fit
		for _, name := range c.Queue.Flavors {
			if mismatch(set.Spec, c.Flavors[name], c.keys()) != "" {
				continue
			}
			f := fit(set, name, c.Flavors[name], c.Nodes)
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
