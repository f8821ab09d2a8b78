package teams

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/hardware"
	"kuota.dev/kuota/handlers/listing"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// queueHead is how many waiting tasks the page of a team lists.
const queueHead = 10

// teamEvents answers GET /teams/{team}/events with the live part of a team's page.
// The form is not part of it.
func (h *Pages) teamEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		// Permission is checked before the stream begins.
		t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
		if err != nil {
			return err
		}
		nothing := func(context.Context) (templ.Component, error) { return views.NoTeamCard("team-usage"), nil }
		over := classstats.RangeOf(timerange.Requested(c.Request().Context(), h.History, c.QueryParams(), h.Now()))
		return s.Stream(c, web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: console.FiguresMinGap, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
			scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
			if governance.KindOf(err) == governance.Outside || err == nil && !scope.Includes(t.Namespace) {
				return "nothing", nothing, nil
			}
			if err != nil {
				return "", nil, err
			}
			idle := h.idleOf(ctx, console.UserOf(c), scope, t.Name)
			return strings.Join([]string{urls.Team(t.Name), over.Key(), scope.Key(), idleKey(idle)}, " "), func(ctx context.Context) (templ.Component, error) {
				u, err := h.teamUsage(ctx, scope, t.Name, over)
				u.Idle = idleRows(idle, h.Now())
				return teamviews.TeamUsageLive(u), err
			}, nil
		}}, h.Frame(c))
	}
}

// teamUsage returns quota, usage and queue of a team, as everyone with this scope
// sees it.
func (h *Pages) teamUsage(ctx context.Context, scope access.Scope, team string, over classstats.Range) (teamviews.TeamUsage, error) {
	var u teamviews.TeamUsage
	list, err := h.Tasks.ClassesWithin(ctx, scope, []string{team}, over.Within)
	if err != nil {
		return u, err
	}
	queued, waits, err := h.Tasks.HeadWithin(ctx, scope, team, queueHead, taskpages.ExplainPatience)
	if err != nil {
		return u, err
	}
	inside, err := h.Tasks.QueueSharesWithin(ctx, scope, team)
	if err != nil {
		return u, err
	}
	u.Inside = insideView(inside, h.Now())
	classes := h.Classes.Table(ctx, scope, list, []string{team}, over)
	u.Classes, u.ClassNote, u.ClassLeft = classes.Rows, classes.Note, classes.Left
	running, waiting := 0, 0
	for _, row := range list.ByPriorityClass {
		running += row.Running
		waiting += row.Pending + row.Preempted
	}
	u.Running = teamCount(team, running, "running", tasks.Running, tasks.Starting, tasks.Stopping)
	u.Waiting = teamCount(team, waiting, "waiting", tasks.Pending, tasks.Preempted)
	u.QueueURL = u.Waiting.URL
	for _, item := range queued {
		u.Queue = append(u.Queue, queuedTask(item, h.Now()))
	}
	if waits > len(queued) {
		u.QueueNote = fmt.Sprintf("the first %d of %s", len(queued), format.Thousands(int64(waits)))
	}
	snapshot, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		u.Trouble = console.SectionTrouble("Quota and usage", err)
		return u, nil
	}
	for i := range snapshot.Teams {
		if snapshot.Teams[i].Name == team {
			u.Rows, u.Overrides = shareFigures(snapshot.Teams[i].Resources), snapshot.Teams[i].Overrides
			u.Held = figures.HeldStatus(&snapshot.Teams[i])
			if used := snapshot.Teams[i].Budget; used != "" {
				u.Overrides = append(slices.Clone(u.Overrides), used)
			}
		}
	}
	return u, nil
}

// teamCount returns a number of the team's tasks with a link to them.
func teamCount(team string, n int, what string, states ...tasks.State) views.Count {
	count := views.Count{Text: fmt.Sprintf("%s %s", format.Thousands(int64(n)), what)}
	if n > 0 {
		values := url.Values{"team": {team}}
		for _, state := range states {
			values.Add("status", string(state))
		}
		count.URL = urls.With(urls.Tasks, values)
	}
	return count
}

func queuedTask(item queries.Item, now time.Time) teamviews.QueuedTask {
	return teamviews.QueuedTask{
		ID: "queued-" + item.UID, Position: format.Ordinal(item.Position), Task: views.TaskLink{Name: item.Name, URL: urls.Task(item.Task)}, PriorityClass: format.OrDash(format.ClassName(item.PriorityClass)),
		Requests: format.OrDash(format.ShortAmounts(item.Requests)), Waited: format.Elapsed(item.Waited(now), true), Reason: taskpages.ListReason(item),
	}
}

// shareFigures returns the rows of a team's quota and usage by pool. Pools without
// accelerators come last.
func shareFigures(cells []capacity.TeamResource) (rows []teamviews.ShareFigures) {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c capacity.TeamResource) bool { return c.Resource == catalog.Network })
	first := map[string]string{} // resource of each pool
	for _, c := range cells {
		if of, ok := first[c.Flavor]; !ok || quota.Compare(c.Resource, of) < 0 {
			first[c.Flavor] = c.Resource
		}
	}
	slices.SortStableFunc(cells, func(a, b capacity.TeamResource) int {
		return cmp.Or(quota.Compare(first[a.Flavor], first[b.Flavor]), strings.Compare(a.Flavor, b.Flavor), quota.Compare(a.Resource, b.Resource))
	})
	for i, c := range cells {
		number := func(amount resources.Amount) string { return quota.Grouped(c.Resource, amount) }
		row := teamviews.ShareFigures{
			ID: "share-" + c.Flavor + "-" + c.Resource, Pool: c.Flavor, SamePool: i > 0 && cells[i-1].Flavor == c.Flavor, Resource: format.ResourceLabel(c.Resource),
			Quota: number(c.Nominal), Used: number(c.Usage), Own: number(c.Own), Borrowed: number(c.Borrowed), Lent: number(c.LentToCohort), Idle: number(c.Idle()),
			Utilization: format.Percent(c.Usage, c.Nominal),
			Meter: ui.MeterProps{Label: shareWords(c), Max: charts.BarMax(c.Resource, c.Nominal, c.Usage), Mark: float64(c.Nominal), Parts: []ui.MeterPart{
				{Use: "own", Value: float64(c.Own)}, {Use: "borrowed", Value: float64(c.Borrowed)}, {Use: "idle", Value: float64(c.Idle())},
			}},
		}
		if c.Unbound > 0 {
			row.Unplaced = quota.Grouped(c.Resource, c.Unbound) + " without a node"
		}
		if c.Growth > 0 {
			row.Growth = number(c.Growth) + " growth"
		}
		rows = append(rows, row)
	}
	return rows
}

// shareWords describes the bar of a team.
func shareWords(c capacity.TeamResource) string {
	words := fmt.Sprintf("%s used of a quota of %s", quota.Grouped(c.Resource, c.Usage), quota.Amount(c.Resource, c.Nominal))
	if c.Borrowed > 0 {
		words += fmt.Sprintf(", %s borrowed", quota.Grouped(c.Resource, c.Borrowed))
	}
	if c.Growth > 0 {
		words += fmt.Sprintf(", %s by growth", quota.Grouped(c.Resource, c.Growth))
	}
	if c.LentToCohort > 0 {
		words += fmt.Sprintf(", %s lent", quota.Grouped(c.Resource, c.LentToCohort))
	}
	return words
}

// membersFact returns the members of a team, if the user is allowed to see its
// allocation.
func (h *Pages) membersFact(c echo.Context, team string) string {
	a, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), team)
	switch {
	case err != nil:
		return "unknown"
	case len(a.Spec.Members) == 0:
		return "none"
	}
	return strings.Join(format.Members(a.Spec.Members), ", ")
}

// showUsage sets the current and past usage on the page of a team.
func (h *Pages) showUsage(c echo.Context, page *teamviews.TeamPage, team, namespace string) error {
	ctx := c.Request().Context()
	scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
	if err != nil || !scope.Includes(namespace) {
		page.Usage.Trouble = console.SectionTrouble("Quota and usage", err)
		return nil
	}
	over := timerange.Requested(ctx, h.History, c.QueryParams(), h.Now())
	if page.Usage, err = h.teamUsage(ctx, scope, team, classstats.RangeOf(over)); err != nil {
		return err
	}
	page.Usage.Idle = idleRows(h.idleOf(ctx, console.UserOf(c), scope, team), h.Now())
	page.Facts = append(page.Facts, views.ValueLine{Name: "Members", Value: h.membersFact(c, team)})
	if h.History != nil {
		past := h.teamPast(ctx, scope, team, over, listing.PageOf(c.QueryParam("page")))
		past.RangeChosen = timerange.Chosen(c.QueryParams())
		page.Past = &past
	}
	kept := url.Values{}
	over.SetValues(kept)
	page.Stream = urls.With(urls.Team(team)+"/events", kept)
	return nil
}

// teamUsageCSV answers GET /teams/{team}/usage.csv: the usage hours of a team over a
// range.
func (h *Pages) teamUsageCSV(c echo.Context) error {
	ctx := c.Request().Context()
	t, err := h.Submit.Team(ctx, console.UserOf(c), c.Param("team"))
	if err != nil {
		return err
	}
	scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
	if err != nil {
		return err
	}
	if h.History == nil {
		return &governance.Error{Kind: governance.NotFound, Op: "usage of team", Message: taskpages.NoHistory}
	}
	snapshot, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return err
	}
	rows, err := h.usageHours(ctx, snapshot, t.Name, timerange.Requested(ctx, h.History, c.QueryParams(), h.Now()))
	if err != nil {
		return &governance.Error{Kind: governance.Unavailable, Op: "usage of team", Message: taskpages.HistoryUnavailable(err), Err: err}
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return console.CSVFile(c, t.Name+"-usage", rows)
}

// maxIdle is the largest number of idle tasks that the page of a team lists.
const maxIdle = 20

// Stops reports what a user can stop.
type Stops interface {
	MayStop(ctx context.Context, user governance.User, at tasks.Address) (bool, error)
}

// idleTask is an idle task of a team, as one reader sees it.
type idleTask struct {
	hardware.Idle
	mayStop bool
}

// idleOf returns the idle tasks of a team that user sees, those that are idle longest first.
// A task of which it is not known whether the user may stop it has no button.
func (h *Pages) idleOf(ctx context.Context, user governance.User, scope access.Scope, team string) (list []idleTask) {
	for _, idle := range h.Hardware.IdleTasks(ctx) {
		if idle.Team == team && scope.Includes(idle.Task.Namespace) {
			list = append(list, idleTask{Idle: idle})
		}
	}
	slices.SortFunc(list, func(a, b idleTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(b.Accelerators, a.Accelerators), strings.Compare(a.Task.UID, b.Task.UID))
	})
	list = list[:min(maxIdle, len(list))]
	if h.Stops == nil || h.ReadOnlyReason() != "" {
		return list
	}
	for i := range list {
		list[i].mayStop, _ = h.Stops.MayStop(ctx, user, list[i].Task)
	}
	return list
}

// idleKey identifies what idleRows renders.
func idleKey(list []idleTask) string {
	var key strings.Builder
	for _, t := range list {
		fmt.Fprintf(&key, "%s/%d/%t ", t.Task.UID, t.Since.Unix(), t.mayStop)
	}
	return key.String()
}

func idleRows(list []idleTask, now time.Time) (rows []teamviews.IdleTask) {
	for _, t := range list {
		row := teamviews.IdleTask{
			ID: "idle-" + t.Task.UID, Task: views.TaskLink{Name: t.Task.Name, URL: urls.TaskOf(t.Task.Namespace, t.Task.Kind, t.Task.Name)}, Kind: t.Task.Kind,
			Accelerators: format.Thousands(t.Accelerators), For: format.Age(now.Sub(t.Since)), Peak: t.PeakWords(),
		}
		if t.mayStop {
			row.StopURL = row.Task.URL + "/stop"
		}
		rows = append(rows, row)
	}
	return rows
}
