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
}

// QuotaSource is one resource of one flavor, in the units of quota.Resources. Usage
// is Own plus Borrowed; Borrowed is Unallocated, what Lenders lend, and Uncovered.
type QuotaSource struct {
	quota.FlavorResource
	Usage, Own, Borrowed resources.Amount
	Unallocated          resources.Amount // quota of the root Cohort: it is allocated to no team
	Lenders              []Lender         // the largest first; apportioned
	Uncovered            resources.Amount // beyond all quota: a nominal quota was lowered
}

// Lender is a team that lends, or a Cohort below the root that lends its own quota;
// without a name, all those that the viewer may not see.
type Lender struct {
	Team   string
	Cohort string // the words that name it
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
	of := &tree{queues: map[string]*explain.Queue{queue: v.cohortMember(own)}}
	if root := s.objects.Root(string(own.Spec.CohortName)); root != "" {
		of = s.members(root)
	}
	b := &QuotaSources{}
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
func (v viewer) quotaSource(t *tasks.Task, fr quota.FlavorResource, queue string, of *tree) QuotaSource {
	members := slices.Sorted(maps.Keys(of.queues))
	queues, own := make([]usage.Queue, len(members)), slices.Index(members, queue)
	used, amounts, mine := v.index.Portions(fr, queue, t, members)
	for i, name := range members {
		limit := of.queues[name].Limits[fr]
		queues[i] = usage.Queue{Name: name, Cohort: of.queues[name].Cohort, Usage: used[i], Nominal: limit.Nominal, LendingLimit: ptr.Deref(limit.LendingLimit, limit.Nominal)}
	}
	borrowed := usage.BorrowedInOrder(queues[own].Nominal, amounts)
	l := QuotaSource{FlavorResource: fr}
	for i, amount := range borrowed {
		if mine[i] {
			l.Usage, l.Borrowed = l.Usage.Plus(amounts[i]), l.Borrowed.Plus(amount)
		}
	}
	l.Own = l.Usage.Minus(l.Borrowed)
	if l.Borrowed == 0 {
		return l
	}
	var cohorts []usage.Cohort
	for _, name := range slices.Sorted(maps.Keys(of.cohorts)) {
		c := of.cohorts[name]
		cohorts = append(cohorts, usage.Cohort{Name: name, Parent: c.Parent, Nominal: c.Limits[fr].Nominal, LendingLimit: ptr.Deref(c.Limits[fr].LendingLimit, resources.Unlimited)})
	}
	loans := usage.ApportionLoansByBorrower(queues, cohorts)
	var unallocated resources.Amount
	var sources []resources.Amount // after unallocated quota, and quota that no lender covers
	var lenders []Lender
	for i, name := range members {
		sources, lenders = append(sources, loans.ByQueue[i][own]), append(lenders, Lender{Team: v.lender(name)})
	}
	for i, c := range cohorts {
		if c.Parent == "" {
			unallocated = loans.ByCohort[i][own]
		} else {
			sources, lenders = append(sources, loans.ByCohort[i][own]), append(lenders, v.lendingCohort(of, c, queue))
		}
	}
	byLender := map[Lender]resources.Amount{}
	for i, shares := range usage.Spread(append([]resources.Amount{unallocated, loans.OverQuota[own]}, sources...), borrowed) {
		for j, amount := range shares {
			switch {
			case !mine[j] || amount == 0:
			case i == 0:
				l.Unallocated = l.Unallocated.Plus(amount)
			case i == 1:
				l.Uncovered = l.Uncovered.Plus(amount)
			default:
				byLender[lenders[i-2]] = byLender[lenders[i-2]].Plus(amount)
			}
		}
	}
	for lender, amount := range byLender {
		lender.Amount = amount
		l.Lenders = append(l.Lenders, lender)
	}
	slices.SortFunc(l.Lenders, func(a, b Lender) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Team, b.Team), strings.Compare(a.Cohort, b.Cohort))
	})
	return l
}

// lendingCohort returns a Cohort that lends to a queue. The viewer sees the ancestors of the
// queue, and with a scope of everything all others.
func (v viewer) lendingCohort(of *tree, c usage.Cohort, queue string) Lender {
	for name := of.queues[queue].Cohort; !v.scope.All && name != c.Name; {
		above := of.cohorts[name]
		if above == nil {
			return Lender{}
		}
		name = above.Parent
	}
	return Lender{Cohort: of.cohorts[c.Name].Title}
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
