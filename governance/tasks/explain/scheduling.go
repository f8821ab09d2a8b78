package explain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
)

// explainScheduling explains why pods of a task that uses quota have no nodes:
// Kueue counts quota, and the scheduler matches nodes.
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
			if v.Constraint == Fragmented || v.Constraint == NodesFull {
				v.waitForTerminating(t, set, c, name)
			}
			return v
		}
	}
	return v
}

// waitForTerminating sets the constraint to PodsTerminating if a pod of the set fits on a
// node of a flavor once pods there have ended.
func (v *Verdict) waitForTerminating(t Task, set PodSet, c *Cluster, flavor string) {
	var list []TerminatingPod
	nodes := slices.Clone(c.Nodes)
	for i := range nodes {
		n := &nodes[i]
		if !n.Ready || !matchesNode(n, set.Spec, c.Flavors[flavor]) {
			continue
		}
		n.Free = maps.Clone(n.Free)
		for _, p := range t.Pods.Terminating {
			if p.Node == n.Name {
				n.Free.Add(p.Requests)
				n.Free[string(corev1.ResourcePods)] = n.Free[string(corev1.ResourcePods)].Plus(1)
				list = append(list, p)
			}
		}
	}
	if len(list) == 0 || fit(set, flavor, c.Flavors[flavor], nodes).FittingPods == 0 {
		return
	}
	slices.SortFunc(list, func(a, b TerminatingPod) int {
		return cmp.Or(b.Until.Compare(a.Until), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	v.Constraint, v.Terminating, v.Unscheduled, v.EndWithin = PodsTerminating, list, t.Pods.Unscheduled, max(0, list[0].Until.Sub(c.Now))
}

// unscheduledPodSets returns the pod sets with pods that have no node. Pods are
// matched to sets by their requests; if none matches, all sets are returned.
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

// tooSmallEverywhere returns why no node of any flavor is large enough for the pods
// of a pending task: it would get quota, but no node. nil if one is large enough,
// or there are no nodes.
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
