package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/usage"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

const (
	teamListURL   = "/teams"
	teamEventsURL = "/events/teams" // a team may be called events
	teamsCSVURL   = "/teams.csv"
)

// teamsOnPage is how many teams the list has on a page.
const teamsOnPage = 100

func (h *Handlers) teamsQuery(values url.Values) figureQuery {
	return parseFigures(teamListURL, "q", "page", values, parseRange(values, usualRange, h.Now()))
}

// teams answers GET /teams: what all teams were given, and what they hold.
func (h *Handlers) teams(c echo.Context) error {
	q := h.teamsQuery(c.QueryParams())
	s, err := h.snapshotFor(c)
	if err != nil {
		return err
	}
	resource := q.counted(s)
	page := views.TeamsPage{Controls: q.controls("Teams", s, false), Teams: q.teamTable(q.teamLines(s, resource), resource, teamsOnPage)}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Teams", "teams", addressWith(teamEventsURL, q.values)
	return web.Render(c, http.StatusOK, views.Teams(page))
}

// teamsEvents answers GET /events/teams: the same, as it changes.
func (h *Handlers) teamsEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := h.teamsQuery(c.QueryParams())
		return h.streamFigures(s, c, "teams", q.values, func(scope access.Scope) func(context.Context) (templ.Component, error) {
			return func(ctx context.Context) (templ.Component, error) {
				s, err := h.Capacity.Within(ctx, scope)
				if err != nil {
					return nil, err
				}
				resource := q.counted(s)
				return views.TeamsLive(q.teamTable(q.teamLines(s, resource), resource, teamsOnPage)), nil
			}
		})
	}
}

// teamsCSV answers GET /teams.csv: all teams that are found, in one resource.
func (h *Handlers) teamsCSV(c echo.Context) error {
	q := h.teamsQuery(c.QueryParams())
	s, err := h.snapshotFor(c)
	if err != nil {
		return err
	}
	resource := q.counted(s)
	list := q.teamLines(s, resource)
	rows := [][]string{{"team", "name", "namespace", "weight", "pool", "resource", "unit", "allocated", "held", "own", "borrowed", "lent", "utilization %", "running tasks", "waiting tasks"}}
	for _, f := range list.found {
		row := []string{f.team.Name, f.team.DisplayName, f.team.Namespace, strconv.Itoa(int(f.team.Weight)), q.pool, resource, unitOf(resource)}
		for _, amount := range []int64{f.Quota, f.Held, f.Own, f.Borrowed, f.Lent} {
			row = append(row, csvAmount(resource, amount))
		}
		utilization := strings.TrimSuffix(usage.Percent(f.Held, f.Quota), " %")
		if f.Quota <= 0 {
			utilization = ""
		}
		rows = append(rows, append(row, utilization, strconv.Itoa(f.running), strconv.Itoa(f.waiting)))
	}
	return csvFile(c, "teams", rows)
}

// csvAmount is an amount as spreadsheets take it.
func csvAmount(resource string, amount int64) string { return quota.Number(resource, amount) }
