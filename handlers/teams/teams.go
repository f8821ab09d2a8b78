package teams

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// teamsOnPage is the number of teams on a page of the list.
const teamsOnPage = 100

func (h *Pages) teamsQuery(values url.Values) figures.Query {
	return figures.Parse(urls.Teams, "q", "page", values, timerange.Parse(values, timerange.UsualRange, h.Now()))
}

// teams answers GET /teams: quota and usage of all teams.
func (h *Pages) teams(c echo.Context, scope access.Scope) error {
	q := h.teamsQuery(c.QueryParams())
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	shares, err := h.sharesWithin(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	page := teamviews.TeamsPage{Shares: shares, Controls: q.Controls("Teams", s, false), Teams: q.TeamTable(q.TeamLines(s, resource), resource, teamsOnPage)}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Teams", "teams", urls.With(urls.TeamsEvents, q.Values)
	return web.Render(c, http.StatusOK, teamviews.Teams(page))
}

// teamsEvents answers GET /events/teams with the live part of the same page.
func (h *Pages) teamsEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := h.teamsQuery(c.QueryParams())
		changed := func(ctx context.Context) <-chan struct{} { return cluster.Either(ctx, h.CapacityChanges, h.Advice) }
		part := web.Part{Changed: changed, MinGap: console.FiguresMinGap}
		return h.StreamWithin(s, c, "teams", q.Values, part, func(scope access.Scope) web.RenderFunc {
			return func(ctx context.Context) (templ.Component, error) {
				s, err := h.Capacity.Within(ctx, scope)
				if err != nil {
					return nil, err
				}
				resource := q.Counted(s)
				shares, err := h.sharesWithin(ctx, scope)
				if err != nil {
					return nil, err
				}
				return teamviews.TeamsLive(q.TeamTable(q.TeamLines(s, resource), resource, teamsOnPage), shares), nil
			}
		})
	}
}

// teamsCSV answers GET /teams.csv: all teams that match, in one resource.
func (h *Pages) teamsCSV(c echo.Context, scope access.Scope) error {
	q := h.teamsQuery(c.QueryParams())
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	list := q.TeamLines(s, resource)
	rows := [][]string{{"team", "name", "namespace", "weight", "pool", "resource", "unit", "allocated", "held", "own", "borrowed", "lent", "utilization %", "running tasks", "waiting tasks", "growth"}}
	for _, f := range list.Found {
		row := []string{f.Team.Name, f.Team.DisplayName, f.Team.Namespace, strconv.Itoa(int(f.Team.Weight)), q.Pool, resource, format.Unit(resource)}
		for _, amount := range []resources.Amount{f.Nominal, f.Usage, f.Own, f.Borrowed, f.LentToCohort} {
			row = append(row, quota.Number(resource, amount))
		}
		utilization := strings.TrimSuffix(usage.Percent(f.Usage, f.Nominal), " %")
		if f.Nominal <= 0 {
			utilization = ""
		}
		rows = append(rows, append(row, utilization, strconv.Itoa(f.Running), strconv.Itoa(f.Waiting), quota.Number(resource, f.Growth)))
	}
	return console.CSVFile(c, "teams", rows)
}
