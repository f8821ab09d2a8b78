package teams

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
)

// team answers GET /teams/{team}: quota, usage, queue and history of a team. range=, from=
// and to= select the range of the figures, and page= the page of past tasks. Values of
// the form that submits a task lead to its page, which they were once part of.
func (h *Pages) team(c echo.Context) error {
	t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
	if err != nil {
		return err
	}
	query := c.QueryParams()
	if !query.Has("submitted") {
		for name := range (&submitForm{}).inputs() {
			if query.Has(name) {
				return c.Redirect(http.StatusSeeOther, urls.With(urls.TeamSubmit(t.Name), query))
			}
		}
	}
	page := teamviews.TeamPage{
		DisplayName: t.DisplayName, SubmitURL: urls.TeamSubmit(t.Name), MaySubmit: t.MaySubmit,
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Facts, page.Charts = t.Name, "teams", teamFacts(t), h.History != nil
	if page.Path, err = h.DepartmentPath(c, t.Name); err != nil {
		return err
	}
	page.Dashboard = h.External(h.Dashboard, urls.LinkSource{Namespace: t.Namespace, Team: t.Name})
	if err := h.showUsage(c, &page, t.Name, t.Namespace); err != nil {
		return err
	}
	if name := query.Get("submitted"); name != "" {
		page.Notice = views.TaskLink{Name: name, URL: urls.TaskOf(t.Namespace, cmp.Or(query.Get("kind"), string(submit.Job)), name)}
	}
	return web.Render(c, http.StatusOK, teamviews.Team(page))
}

func teamFacts(t submit.Team) []views.ValueLine {
	var pools []string
	for _, p := range t.Pools {
		pools = append(pools, p.Name)
	}
	namespace := format.OrDash(t.Namespace)
	if len(t.Neighbors) > 0 {
		namespace += ", shared with team " + strings.Join(t.Neighbors, ", ") + ": its members see the tasks of each"
	}
	return []views.ValueLine{
		{Name: "Namespace", Value: namespace}, {Name: "Queue", Value: format.OrDash(t.Queue)}, {Name: "Pools", Value: format.OrDash(strings.Join(pools, ", "))},
	}
}

// insideView returns the table of the shares of a team; nil without shares.
func insideView(shares []queries.QueueShare, now time.Time) *teamviews.InsideShares {
	view := &teamviews.InsideShares{}
	var usage, weight float64
	var sampled time.Time
	ordered := 0
	for _, s := range shares {
		if len(s.Own) > 0 {
			view.Quota = true
			continue
		}
		ordered++
		usage, weight = usage+s.Usage, weight+s.Weight
		if s.SampledAt.After(sampled) {
			sampled = s.SampledAt
		}
	}
	if view.Ordered = ordered > 1; !view.Ordered && !view.Quota { // only the team's queue
		return nil
	}
	view.Counted = !sampled.IsZero()
	switch {
	case view.Counted:
		view.Note = "usage as of " + format.Age(now.Sub(sampled)) + " ago"
	case view.Ordered:
		view.Note = "Kueue does not count usage now"
	}
	for _, s := range shares {
		row := teamviews.InsideRow{
			ID: "inside-" + s.Queue, Name: cmp.Or(s.Name, "The team's queue"), Queue: s.Queue, Weight: strconv.FormatFloat(s.Weight, 'f', -1, 64),
			Usage: decayed(s.Consumed), Part: "–", Fair: percent(s.Weight, weight), Running: format.Thousands(int64(s.Admitted)), Waiting: format.Thousands(int64(s.Pending)), Quota: "the team's",
		}
		if usage > 0 {
			row.Part = percent(s.Usage, usage)
		}
		if len(s.Own) > 0 {
			row.Quota, row.Fair, row.Part = ownQuota(s.Own), "–", "–"
		}
		view.Rows = append(view.Rows, row)
	}
	return view
}

// ownQuota returns the usage of a share's quota, such as "2 of 4 GPUs": accelerators, or else all.
func ownQuota(own []queries.QuotaUsage) string {
	var accelerators, all []string
	for _, q := range own {
		if q.Nominal == 0 && q.Usage == 0 {
			continue
		}
		text := quota.Number(q.Resource, q.Usage) + " of " + quota.Amount(q.Resource, q.Nominal) + ", " + q.Flavor
		if all = append(all, text); catalog.IsAccelerator(q.Resource) {
			accelerators = append(accelerators, text)
		}
	}
	if len(accelerators) > 0 {
		all = accelerators
	}
	return format.OrDash(strings.Join(all, "; "))
}

func percent(part, whole float64) string { return fmt.Sprintf("%.0f %%", 100*part/whole) }

// decayed formats the average usage of resources, such as "10.4 GPUs".
func decayed(consumed corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(consumed), func(a, b corev1.ResourceName) int { return quota.Compare(string(a), string(b)) }) {
		amount := consumed[name]
		number, unit := amount.AsApproximateFloat64(), format.ResourceLabel(string(name))
		if name == catalog.Memory {
			number, unit = number/float64(catalog.GiB), "GiB"
		}
		parts = append(parts, strconv.FormatFloat(number, 'f', 1, 64)+" "+unit)
	}
	return format.OrDash(strings.Join(parts, ", "))
}

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
		s.Hint = "A share is the part of what all teams can lend that a team borrows, divided by its weight. The team with the lowest share gets idle compute first."
		if slices.ContainsFunc(all.Nodes, func(n queries.NodeShare) bool { return n.Cohort != "" }) {
			s.Hint = "A share is the part of what all can lend that a team or department borrows, divided by its weight. The lowest share of each level gets idle compute first."
		}
	}
	for _, t := range all.Nodes {
		row := teamviews.ShareRow{Name: format.Upper(t.Cohort), Level: t.Level, Weight: strconv.FormatFloat(t.Weight, 'f', -1, 64), Share: strconv.FormatFloat(t.Share/10, 'f', -1, 64) + " %", Waiting: strconv.Itoa(t.Waiting)}
		if math.IsInf(t.Share, 1) {
			row.Share = "∞"
		}
		if t.Cohort == "" {
			row.Name, row.URL = format.JoinedBy(", share ", t.Team, t.OfShare), urls.Team(t.Team)
		}
		var pools []string
		for _, next := range all.Next {
			if !next.Tied && slices.ContainsFunc(next.Tasks, func(a explain.AdmittedWorkload) bool { return t.Team != "" && a.Team == t.Team }) {
				pools = append(pools, next.Flavor)
			}
		}
		if len(pools) > 0 {
			row.Next = "next in line for " + strings.Join(pools, ", ")
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
