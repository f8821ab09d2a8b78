package explain

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"kuota.dev/kuota/governance/quota"
)

// demand is the requests of a pod set in one resource group: Kueue assigns each
// group its own flavor.
type demand struct {
	set       *PodSet
	pods      int64
	requests  quota.Resources
	resources []string // of each, those of the group
	flavors   []match
}

// pods is the resource of which each pod requests one, without a word in its spec.
const pods = string(corev1.ResourcePods)

// match is a flavor of a group, and why its nodes do not match the pods; empty if
// they do.
type match struct{ flavor, mismatch string }

func demands(t Task, c *Cluster) (all []demand) {
	for i := range t.PodSets {
		set := &t.PodSets[i]
		each := set.Counted()
		if slices.Contains(c.Queue.Resources, pods) { // as Kueue adds it
			each = maps.Clone(each)
			each[pods] = 1
		}
		for _, group := range c.Queue.groups() {
			d := demand{set: set, pods: int64(set.MinCount), requests: each}
			for _, name := range each.Names() {
				if each[name] > 0 && slices.Contains(group.Resources, name) {
					d.resources = append(d.resources, name)
				}
			}
			if len(d.resources) == 0 {
				continue
			}
			for _, name := range group.Flavors {
				d.flavors = append(d.flavors, match{name, cmp.Or(mismatch(set.Spec, c.Flavors[name]), t.otherFlavor(name, d.resources))})
			}
			all = append(all, d)
		}
	}
	return all
}

// otherFlavor returns a mismatch if running pods of the task are in another flavor.
func (t *Task) otherFlavor(flavor string, names []string) string {
	for fr := range t.ReplacedUsage {
		if fr.Flavor != flavor && slices.Contains(names, fr.Resource) {
			return "its pods that run are in " + fr.Flavor
		}
	}
	return ""
}

// assignFlavors assigns each demand the first flavor in which all of it fits, as
// Kueue does. It returns the usage of the task; if a demand fits in none, its index
// and the usage of those before it. failed is -1 for none.
func (l *snapshot) assignFlavors(all []demand) (need quota.FlavorResourceQuantities, failed int) {
	need = quota.FlavorResourceQuantities{}
	for i := range all {
		found := slices.IndexFunc(all[i].flavors, func(m match) bool {
			return m.mismatch == "" && l.fits(all[i], m.flavor, need)
		})
		if found < 0 {
			return need, i
		}
		all[i].add(need, all[i].flavors[found].flavor)
	}
	return need, -1
}

func (l *snapshot) fitsNow(all []demand) bool { _, failed := l.assignFlavors(all); return failed < 0 }

func (d demand) add(need quota.FlavorResourceQuantities, flavor string) {
	for _, name := range d.resources {
		fr := quota.FlavorResource{Flavor: flavor, Resource: name}
		need[fr] = need[fr].Plus(d.requests[name].Times(d.pods))
	}
}

func (l *snapshot) fits(d demand, flavor string, need quota.FlavorResourceQuantities) bool {
	for _, name := range d.resources {
		fr := quota.FlavorResource{Flavor: flavor, Resource: name}
		if d.requests[name].Times(d.pods).Plus(need[fr]) > l.own.available(l.index[fr]) {
			return false
		}
	}
	return true
}

// totalWith returns the usage of a task with a flavor for one demand, including the
// demands before it: those after it get a flavor in which they fit, or could.
func (l *snapshot) totalWith(all []demand, at int, flavor string, before quota.FlavorResourceQuantities) quota.FlavorResourceQuantities {
	need := maps.Clone(before)
	all[at].add(need, flavor)
	for _, d := range all[at+1:] {
		chosen := ""
		for _, m := range d.flavors {
			if m.mismatch != "" {
				continue
			}
			if l.fits(d, m.flavor, need) {
				chosen = m.flavor
				break
			}
			if chosen == "" && !slices.ContainsFunc(l.tryFlavor(d, m, need).Shortages, Shortage.exceedsMax) {
				chosen = m.flavor
			}
		}
		if chosen != "" {
			d.add(need, chosen)
		}
	}
	return need
}

// tryFlavor returns why a demand does not fit in a flavor.
func (l *snapshot) tryFlavor(d demand, m match, taken quota.FlavorResourceQuantities) FlavorVerdict {
	f := FlavorVerdict{Flavor: m.flavor, Mismatch: m.mismatch}
	if f.Mismatch != "" {
		return f
	}
	for _, name := range d.resources {
		fr := quota.FlavorResource{Flavor: m.flavor, Resource: name}
		i, n := l.index[fr], l.own
		needed := d.requests[name].Times(d.pods).Plus(taken[fr])
		if needed <= n.available(i) {
			continue
		}
		s := Shortage{
			FlavorResource: fr, Needed: needed, Available: max(0, n.available(i)), PotentialAvailable: n.potentialAvailable(i),
			Nominal: n.limits[i].Nominal, Used: n.usage[i], BorrowingLimit: n.limits[i].BorrowingLimit, Borrowable: n.borrowable(i),
		}
		s.Border = n.border(i, needed, s.exceedsMax())
		f.Shortages = append(f.Shortages, s)
	}
	return f
}

// triedFlavors returns the flavors of a demand up to the first in which it fits.
func (l *snapshot) triedFlavors(d demand, taken quota.FlavorResourceQuantities) (list []FlavorVerdict) {
	for _, m := range d.flavors {
		f := l.tryFlavor(d, m, taken)
		list = append(list, f)
		if f.Mismatch == "" && len(f.Shortages) == 0 {
			break
		}
	}
	return list
}
