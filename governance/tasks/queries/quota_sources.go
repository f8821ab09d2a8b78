package queries

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/usage"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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
	queue := string(t.Main.Status.Admission.ClusterQueue)
	var list kueue.ClusterQueueList
	if err := v.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list queues", err)
	}
	i := slices.IndexFunc(list.Items, func(q kueue.ClusterQueue) bool { return q.Name == queue })
	if i < 0 {
		return nil, nil
	}
	name := list.Items[i].Spec.CohortName
	members := []*kueue.ClusterQueue{&list.Items[i]}
	for j := range list.Items {
		if name != "" && j != i && list.Items[j].Spec.CohortName == name {
			members = append(members, &list.Items[j])
		}
	}
	slices.SortFunc(members, func(a, b *kueue.ClusterQueue) int { return strings.Compare(a.Name, b.Name) })
	cohort := explain.Cluster{CohortQuota: quota.FlavorResourceQuantities{}, Queues: make(map[string]*explain.Queue, len(members))}
	for _, q := range members {
		cohort.Queues[q.Name] = v.cohortMember(q)
	}
	var err error
	if cohort.Nested, err = v.cohortQuota(ctx, string(name), cohort.CohortQuota); err != nil {
		return nil, err
	}
	b := &QuotaSources{Nested: cohort.Nested}
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
		if line := v.quotaSource(t, fr, queue, members, cohort); line.Usage > 0 {
			b.Sources = append(b.Sources, line)
		}
	}
	return b, nil
}

// quotaSource returns the sources of one FlavorResource.
func (v viewer) quotaSource(t *tasks.Task, fr quota.FlavorResource, queue string, members []*kueue.ClusterQueue, cohort explain.Cluster) QuotaSource {
	teams := make([]usage.Queue, len(members))
	own := 0
	used, amounts, mine := v.index.Portions(fr, queue, t, members)
	for i, q := range members {
		teams[i] = usage.Queue{Name: q.Name, Usage: used[i]}
		limit := cohort.Queues[q.Name].Limits[fr]
		teams[i].Nominal, teams[i].LendingLimit = limit.Nominal, limit.Nominal
		if limit.LendingLimit != nil {
			teams[i].LendingLimit = *limit.LendingLimit
		}
		if q.Name == queue {
			own = i
		}
	}
	borrowed := usage.BorrowedInOrder(teams[own].Nominal, amounts)
	l := QuotaSource{FlavorResource: fr}
	for i, amount := range borrowed {
		if mine[i] {
			l.Usage, l.Borrowed = l.Usage.Plus(amounts[i]), l.Borrowed.Plus(amount)
		}
	}
	l.Own = l.Usage.Minus(l.Borrowed)
	if l.Borrowed == 0 || cohort.Nested {
		return l
	}
	loans := usage.ApportionLoansByBorrower(teams, cohort.CohortQuota[fr])
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
func (v viewer) lender(q *kueue.ClusterQueue) string {
	switch team := v.teams.OfClusterQueue(q.Name); {
	case v.seesTeam(team):
		return team
	case v.sees == nil && team == "":
		return q.Name
	}
	return ""
}
