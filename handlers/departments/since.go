package departments

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
)

// longestLoan is how far back the begin of a loan is looked for.
const longestLoan = 24 * time.Hour

// borrower is a department or a team that uses more than its quota of a resource.
type borrower struct {
	department, team string
	quota.FlavorResource
}

// setSince sets since when the loans of departments last: since when the borrower has used
// more than the quota that it has now. Without history, nothing is set.
func (h *Pages) setSince(ctx context.Context, s *seen, names ...string) {
	if h.History == nil {
		return
	}
	loans := map[borrower][]*departments.Loan{}
	for _, name := range names {
		for _, r := range s.figures[name].Resources {
			for i := range r.From {
				of := borrower{name, "", r.FlavorResource}
				loans[of] = append(loans[of], &r.From[i])
			}
			for i, l := range r.To {
				if of := (borrower{l.Department, l.Team, r.FlavorResource}); l.Department != "" || l.Team != "" {
					loans[of] = append(loans[of], &r.To[i])
				}
			}
		}
	}
	var sums []history.Above
	var lists [][]*departments.Loan
	for of, list := range loans {
		sums, lists = append(sums, s.above(of)), append(lists, list)
	}
	if len(sums) == 0 {
		return
	}
	since, err := h.History.AboveSince(ctx, sums, h.Now().Add(-longestLoan))
	if err != nil { // the loans are true without it
		return
	}
	for n, list := range lists {
		for _, l := range list {
			l.Since = since[n]
		}
	}
}

// above returns what a borrower uses, and its quota.
func (s *seen) above(b borrower) history.Above {
	teams, nominal := []string{b.team}, resources.Amount(0)
	if b.department != "" {
		teams, nominal = s.Tree.TeamsBelow(b.department), s.Tree.Quota(b.department)[b.Flavor][b.Resource]
	}
	for i := range s.snapshot.Teams {
		t := &s.snapshot.Teams[i]
		for _, r := range t.Resources {
			if b.team == t.Name && r.Flavor == b.Flavor && r.Resource == b.Resource {
				nominal = r.Nominal
			}
		}
	}
	sum := history.Above{Amount: int64(recorder.InHistoryUnit(b.Resource, nominal))}
	for _, team := range teams {
		sum.Keys = append(sum.Keys, history.SeriesKey{Team: team, Pool: b.Flavor, Resource: b.Resource, Measure: history.Used})
	}
	return sum
}
