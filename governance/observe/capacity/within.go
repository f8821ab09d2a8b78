package capacity

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
)

// within returns the snapshot for a scope: teams that it does not include are
// added to Others.
func (s *Snapshot) within(scope access.Scope) *Snapshot {
	seen := map[string]bool{}
	visible := &Snapshot{At: s.At, Pools: s.Pools, Prices: s.Prices}
	var rest []TeamSnapshot
	if s.Others != nil {
		rest = append(rest, *s.Others)
	}
	for _, t := range s.Teams {
		if t.Namespace != "" && scope.Includes(t.Namespace) {
			seen[t.Name] = true
			visible.Teams = append(visible.Teams, t)
		} else {
			rest = append(rest, t)
		}
	}
	visible.Hidden = len(visible.Teams) < len(s.Teams)
	if len(rest) > 0 {
		others := sumOf(rest)
		visible.Others = &others
	}
	visible.Nodes = slices.Clone(s.Nodes)
	for i := range visible.Nodes {
		n := &visible.Nodes[i]
		teams := make(map[string]quota.Resources, len(n.Teams))
		for team, amounts := range n.Teams {
			if seen[team] {
				teams[team] = amounts
				continue
			}
			sum := maps.Clone(teams[""])
			if sum == nil {
				sum = quota.Resources{}
			}
			sum.Add(amounts)
			teams[""] = sum
		}
		n.Teams = teams
	}
	return visible
}

// sumOf returns the sum of teams, as one without a name.
func sumOf(teams []TeamSnapshot) (sum TeamSnapshot) {
	at := map[quota.FlavorResource]int{}
	for _, t := range teams {
		sum.Running += t.Running
		sum.Waiting += t.Waiting
		for _, c := range t.Resources {
			key := quota.FlavorResource{Flavor: c.Flavor, Resource: c.Resource}
			i, ok := at[key]
			if !ok {
				i = len(sum.Resources)
				at[key] = i
				sum.Resources = append(sum.Resources, TeamResource{Flavor: c.Flavor, Resource: c.Resource})
			}
			sum.Resources[i].Add(c.TeamUsage)
		}
	}
	slices.SortFunc(sum.Resources, compareResources)
	return sum
}
