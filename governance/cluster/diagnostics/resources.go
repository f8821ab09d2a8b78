package diagnostics

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/catalog"
)

// checkExcluded checks for resources that ClusterQueues cover and Kueue's
// configuration excludes: their quota has no effect.
func checkExcluded(s Observation) []Finding {
	prefixes := kueueconfig.ExcludedPrefixes(s.Kueue.Text)
	var names, out []string
	for _, resource := range s.Covered {
		found := false
		for _, prefix := range prefixes {
			if resource != pods && strings.HasPrefix(resource, prefix) {
				found = true
				if !slices.Contains(out, prefix) {
					out = append(out, prefix)
				}
			}
		}
		if found {
			names = append(names, resource)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{
		ID: "excluded", Title: "Kueue ignores some resources that queues have quota of", Severity: SeverityError,
		Impact: "Kueue's configuration excludes these, so their quota has no effect: " + strings.Join(names, ", ") + ". The fix also counts other resources with the same prefixes.",
		Fix:    additionFix(s.Kueue.Current, kueueconfig.Addition{Unexclude: out}),
	}}
}

// checkUncovered checks for resources that no ClusterQueue covers: a task that
// requests one is never admitted. It suggests to exclude only resources that
// Kuota has no quota for, because quota of an excluded resource would have no
// effect later.
func checkUncovered(s Observation) []Finding {
	var names, rows, others []string
	severity := SeverityWarning
	for _, u := range s.Uncovered {
		if !kueueconfig.CountsResource(s.Kueue.Text, u.Resource) {
			continue
		}
		names = append(names, u.describe())
		switch {
		case catalog.IsQuotaResource(u.Resource):
			rows = append(rows, u.Resource)
		default:
			others = append(others, u.Resource)
		}
		if u.Tasks > 0 {
			severity = SeverityError
		}
	}
	if len(names) == 0 {
		return nil
	}
	finding := Finding{
		ID: "uncovered", Title: "No queue covers some resources of this cluster", Severity: severity,
		Impact: "A task that requests one of these is never admitted: " + strings.Join(names, ", ") + ".",
	}
	if len(rows) > 0 {
		finding.Impact += " Give a team quota of it: " + strings.Join(rows, ", ") + "."
	}
	if len(others) > 0 {
		finding.Impact += " List these in the cluster policy to give teams quota of them: " + strings.Join(others, ", ") + ". If Kueue excludes them, everyone can use them without quota."
		finding.Fix = additionFix(s.Kueue.Current, kueueconfig.Addition{Exclude: others})
	}
	return []Finding{finding}
}

func (u UncoveredResource) describe() string {
	switch {
	case u.Tasks == 1:
		return u.Resource + " (1 task requests it)"
	case u.Tasks > 1:
		return fmt.Sprintf("%s (%d tasks request it)", u.Resource, u.Tasks)
	}
	return u.Resource
}
