package queries

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
)

// GrowthSources are the sources of the accelerators that growth of a task uses. A task
// borrows with its growth first, since that has the lowest priority.
type GrowthSources struct {
	Own         bool // idle quota of its own team
	Unallocated bool // compute that is allocated to no team
	Lenders     []LendingTeam
}

// LendingTeam is a team that lends idle quota. Its namespace decides who may see it; a
// queue without a team has none.
type LendingTeam struct{ Namespace, Team string }

// GrowthSources returns whose idle compute the growth of a task uses now; nil if that
// is not known, such as in a nested cohort. The answer is not redacted.
func (s *Service) GrowthSources(ctx context.Context, t *tasks.Task) (*GrowthSources, error) {
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return nil, err
	}
	sources, err := v.quotaSources(ctx, t)
	if err != nil || sources == nil || sources.Nested {
		return nil, err
	}
	found := &GrowthSources{}
	for _, source := range sources.Sources {
		growth := resources.Amount(0)
		for _, w := range t.AdmittedWorkloads {
			if w.WorkloadUID != string(t.Main.UID) {
				growth = growth.Plus(w.Usage[source.FlavorResource])
			}
		}
		if !catalog.IsAccelerator(source.Resource) || growth == 0 {
			continue
		}
		found.Own = found.Own || growth > source.Borrowed
		found.Unallocated = found.Unallocated || source.Unallocated > 0
		for _, lender := range source.Lenders {
			if team := (LendingTeam{v.teams.Namespace(lender.Team), lender.Team}); !slices.Contains(found.Lenders, team) {
				found.Lenders = append(found.Lenders, team)
			}
		}
	}
	if !found.Own && !found.Unallocated && found.Lenders == nil {
		return nil, nil
	}
	return found, nil
}
