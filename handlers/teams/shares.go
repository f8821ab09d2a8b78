package teams

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/queries"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	teamviews "kuota.dev/kuota/views/teams"
)

// sharesWithin returns how idle compute is shared, as a scope may see it; nil if
// nothing is known of it.
func (h *Pages) sharesWithin(ctx context.Context, scope access.Scope) (*teamviews.Shares, error) {
	all, err := h.Tasks.SharesWithin(ctx, scope)
	if err != nil || !all.Fair && all.At.IsZero() && !all.Computing {
		return nil, err
	}
	return sharesView(all), nil
}

func sharesView(all queries.Shares) *teamviews.Shares {
	s := &teamviews.Shares{Title: "Idle compute", Note: "first come, first served", State: "verified", NoNext: "No waiting task would start with more of it."}
	if all.Fair {
		s.Title, s.Note = "Fair shares", "as Kueue computes them"
		s.Hint = "A share is how much a team borrows, in thousandths of what all teams can lend, divided by its weight. The team with the lowest share gets idle compute first."
	}
	for _, t := range all.Teams {
		row := teamviews.ShareRow{Team: t.Team, URL: urls.Team(t.Team), Weight: strconv.FormatFloat(t.Weight, 'f', -1, 64), Share: strconv.FormatFloat(t.Share, 'f', -1, 64), Waiting: strconv.Itoa(t.Waiting)}
		if math.IsInf(t.Share, 1) {
			row.Share = "∞"
		}
		s.Rows = append(s.Rows, row)
	}
	if !all.At.IsZero() {
		s.At = all.At.UTC().Format(time.RFC3339)
	}
	switch {
	case all.Failed != nil:
		s.State, s.NoNext = "failed", taskpages.FailedWords(all.Failed)
	case all.Computing:
		s.State, s.NoNext = "computing", "Asking Kueue's scheduler …"
	}
	for _, next := range all.Next {
		start := teamviews.NextStart{Pool: next.Flavor, Text: fmt.Sprintf("%s of %s would start", quota.Amount(next.Resource, next.Amount), next.Flavor), Tasks: taskpages.UsageLinks(next.Tasks)}
		if next.Tied {
			start.Text += " (a tie decides)"
		}
		s.Next = append(s.Next, start)
	}
	for _, p := range all.Preempted {
		s.Preempted = append(s.Preempted, teamviews.NextPreemption{Of: taskpages.UsageLinks(p.Of), For: taskpages.UsageLinks(p.For)})
	}
	return s
}
