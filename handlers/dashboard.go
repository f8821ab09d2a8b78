package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

const (
	dashboardURL       = "/"
	dashboardEventsURL = "/events/dashboard"
)

// figuresMinGap is the least time between two updates of a page of figures.
const figuresMinGap = time.Second

// dashboardTeams is how many teams the dashboard has on a page.
const dashboardTeams = 10

// dashboardQuery is what the address of the dashboard asks for.
func (h *Handlers) dashboardQuery(ctx context.Context, values url.Values) figureQuery {
	return parseFigures(dashboardURL, "tq", "tpage", values, h.askedRange(ctx, values))
}

// dashboard answers GET /: where the cluster stands, and was.
func (h *Handlers) dashboard(c echo.Context) error {
	ctx := c.Request().Context()
	q := h.dashboardQuery(ctx, c.QueryParams())
	scope, err := h.Tasks.Scope(ctx, userOf(c))
	if err != nil {
		return err
	}
	s, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return err
	}
	page, err := h.dashboardPage(ctx, scope, s, q, &keptChart{})
	if err != nil {
		return err
	}
	page.Controls = q.controls("Dashboard", s, true)
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Charts, page.Stream = "Dashboard", "dashboard", true, addressWith(dashboardEventsURL, q.values)
	return web.Render(c, http.StatusOK, views.Dashboard(page))
}

// dashboardEvents answers GET /events/dashboard: the same, as it changes. Its
// address is of none of the dashboard's teams.
func (h *Handlers) dashboardEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values := c.QueryParams()
		return h.streamFigures(s, c, "dashboard", h.dashboardQuery(c.Request().Context(), values).values, func(scope access.Scope) func(context.Context) (templ.Component, error) {
			kept := &keptChart{}
			return func(ctx context.Context) (templ.Component, error) {
				snapshot, err := h.Capacity.Within(ctx, scope)
				if err != nil {
					return nil, err
				}
				page, err := h.dashboardPage(ctx, scope, snapshot, h.dashboardQuery(ctx, values), kept)
				return views.DashboardLive(page), err
			}
		})
	}
}

// streamFigures sends a page of figures to all who see the same, at most once a
// second. id is of the live part, and part what renders it for a scope.
func (h *Handlers) streamFigures(s *web.Server, c echo.Context, id string, values url.Values, part func(access.Scope) func(context.Context) (templ.Component, error)) error {
	return s.Stream(c, web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: figuresMinGap, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
		scope, err := h.Tasks.Scope(ctx, userOf(c))
		if governance.KindOf(err) == governance.Outside {
			return "nothing of " + id, func(context.Context) (templ.Component, error) { return views.NoTeamCard(id), nil }, nil
		}
		return id + " " + values.Encode() + " " + scope.Key(), part(scope), err
	}}, h.frame(c))
}

func (h *Handlers) dashboardPage(ctx context.Context, scope access.Scope, s *capacity.Snapshot, q figureQuery, kept *keptChart) (views.DashboardPage, error) {
	resource := q.counted(s)
	page := views.DashboardPage{Stats: clusterStats(s), Pools: q.poolTable(s)}
	listed := q.teamLines(s, resource)
	page.Teams, page.Bars = q.teamTable(listed, resource, dashboardTeams), listed.bars(resource)
	page.Teams.AllURL = q.seen(teamListURL)
	list, class, err := h.classesOver(ctx, scope, q.over)
	if err != nil {
		return page, err
	}
	page.Stats = slices.Insert(page.Stats, 3, taskStat(list))
	classes := h.classTable(ctx, scope, list, nil, class)
	page.Classes, page.ClassNote, page.ClassLeft, page.ClassCSVURL = classes.rows, classes.note, classes.left, addressWith(classesCSVURL, rangeValues(q.over))
	if page.Loops, err = h.loopNotice(ctx, scope); err != nil {
		return page, err
	}
	page.Held = h.heldChart(ctx, s, q, resource, kept)
	if page.Hardware, err = h.hardwareSection(ctx, scope, q.pool, q.over); err != nil {
		return page, err
	}
	return page, nil
}

func rangeValues(r timeRange) url.Values {
	values := url.Values{}
	r.keep(values)
	return values
}
