package queries

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/utils/ptr"
)

// QuotaSources are the sources of the quota that a task uses. Kueue does not record
// them: of a team's tasks those of the higher priority, and then those admitted
// earlier, use its own quota first, and the rest borrows.
type QuotaSources struct {
	Sources []QuotaSource // accelerators first
	Nested  bool          // the cohort is nested: lenders are not computed
}

// QuotaSource is one resource of one flavor, in the units of quota.Resources. Usage
// is Own plus Borrowed; Borrowed is Unallocated, what Lenders lend, and Uncovered.
type QuotaSource struct {
	quota.FlavorResource
	Usage, Own, Borrowed resources.Amount
	Unallocated          resources.Amount // quota that is allocated to no team
	Lenders              []Lender         // the largest first; apportioned
	Uncovered            resources.Amount // beyond all quota: a nominal quota was lowered
}

// Lender is a team that lends; without a name, all those that the viewer may not
// see.
type Lender struct {
	Team   string
	Amount resources.Amount
}

// Borrows reports whether anything is borrowed.
func (b *QuotaSources) Borrows() bool {
	return slices.ContainsFunc(b.Sources, func(l QuotaSource) bool { return l.Borrowed > 0 })
}

// quotaSources returns the sources of the quota that a task uses; nil if it uses
// none.
func (v viewer) quotaSources(ctx context.Context, t *tasks.Task) (*QuotaSources, error) {
	if !t.State.UsesQuota() || t.Main.Status.Admission == nil {
		return nil, nil
	}
	queue, s := string(t.Main.Status.Admission.ClusterQueue), newSurvey(v)
	if err := s.readQueues(ctx); err != nil {
		return nil, err
	}
	own := s.queues[queue]
	if own == nil {
		return nil, nil
	}
	of := &cohort{queues: map[string]*explain.Queue{queue: v.cohortMember(own)}}
	if own.Spec.CohortName != "" {
		var err error
		if of, err = s.members(ctx, string(own.Spec.CohortName)); err != nil {
			return nil, err
		}
	}
	b := &QuotaSources{Nested: of.nested}
	var usage quota.FlavorResourceQuantities
	for _, h := range t.AdmittedWorkloads {
		if h.Queue == queue {
			usage = h.Usage
		}
	}
	keys := slices.SortedFunc(maps.Keys(usage), func(a, b quota.FlavorResource) int {
		return cmp.Or(quota.Compare(a.Resource, b.Resource), strings.Compare(a.Flavor, b.Flavor))
	})
	for _, fr := range keys {
		if line := v.quotaSource(t, fr, queue, of); line.Usage > 0 {
			b.Sources = append(b.Sources, line)
		}
	}
	return b, nil
}

// quotaSource returns the sources of one FlavorResource.
func (v viewer) quotaSource(t *tasks.Task, fr quota.FlavorResource, queue string, of *cohort) QuotaSource {
	members := slices.Sorted(maps.Keys(of.queues))
	teams, own := make([]usage.Queue, len(members)), slices.Index(members, queue)
	used, amounts, mine := v.index.Portions(fr, queue, t, members)
	for i, name := range members {
		limit := of.queues[name].Limits[fr]
		teams[i] = usage.Queue{Name: name, Usage: used[i], Nominal: limit.Nominal, LendingLimit: ptr.Deref(limit.LendingLimit, limit.Nominal)}
	}
	borrowed := usage.BorrowedInOrder(teams[own].Nominal, amounts)
	l := QuotaSource{FlavorResource: fr}
	for i, amount := range borrowed {
		if mine[i] {
			l.Usage, l.Borrowed = l.Usage.Plus(amounts[i]), l.Borrowed.Plus(amount)
		}
	}
	l.Own = l.Usage.Minus(l.Borrowed)
	if l.Borrowed == 0 || of.nested {
		return l
	}
	loans := usage.ApportionLoansByBorrower(teams, of.shared[fr])
	sources := []resources.Amount{loans.Unallocated[own], loans.OverQuota[own]}
	for i := range teams {
		sources = append(sources, loans.ByLender[i][own])
	}
	byName := map[string]resources.Amount{}
	for i, shares := range usage.Spread(sources, borrowed) {
		for j, amount := range shares {
			switch {
			case !mine[j]:
			case i == 0:
				l.Unallocated = l.Unallocated.Plus(amount)
			case i == 1:
				l.Uncovered = l.Uncovered.Plus(amount)
			case amount > 0:
				byName[v.lender(members[i-2])] = byName[v.lender(members[i-2])].Plus(amount)
			}
		}
	}
	for name, amount := range byName {
		l.Lenders = append(l.Lenders, Lender{name, amount})
	}
	slices.SortFunc(l.Lenders, func(a, b Lender) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Team, b.Team))
	})
	return l
}

// lender returns the name of a lending queue that the viewer may see; empty for
// none.
func (v viewer) lender(queue string) string {
	switch team := v.teams.OfClusterQueue(queue); {
	case v.seesTeam(team):
		return team
	case v.scope.All && team == "":
		return queue
	}
	return ""
}
