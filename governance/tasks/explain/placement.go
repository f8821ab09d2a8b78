package explain

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/quota"
)

// placement says why a task that has its quota has not all of its pods on nodes:
// Kueue counts quota, and the scheduler looks at nodes.
func explainScheduling(t Task, c *Cluster) Verdict {
	if t.Pods.Unscheduled == 0 {
		if len(c.ResourceQuotas) > 0 {
			return Verdict{Constraint: ResourceQuotaReached, ResourceQuota: &c.ResourceQuotas[0]}
		}
		return Verdict{Constraint: Unschedulable, Detail: t.Pods.SchedulerMessage}
	}
	v := Verdict{Constraint: Unschedulable, Detail: t.Pods.SchedulerMessage}
	for _, set := range unscheduledPodSets(t) {
		for _, name := range t.Pods.Flavors[set.Name] {
			f := fit(set, name, c.Flavors[name], c.Nodes)
			switch {
			case f.Ready == 0:
				v.Constraint = NoNodes
			case f.TooSmall():
				v.Constraint = TooSmall
			case f.Fragmented():
				v.Constraint = Fragmented
			case f.FittingPods == 0:
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
func unscheduledPodSets(t Task) []PodSet {
	var sets []PodSet
	for _, set := range t.PodSets {
		if slices.ContainsFunc(t.Pods.Requests, func(asks quota.Resources) bool { return maps.Equal(asks, set.Requests) }) {
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
func tooSmallEverywhere(all []demand, c *Cluster) *Fit {
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
