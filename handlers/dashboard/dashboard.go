package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/hardware"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	dashboardviews "kuota.dev/kuota/views/dashboard"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/util/cache"
)

// dashboardTeams is the number of teams on a page of the dashboard.
const dashboardTeams = 10

// dashboardQuery parses the address of the dashboard.
func (h *Pages) dashboardQuery(ctx context.Context, values url.Values) figures.Query {
	return figures.Parse(urls.Dashboard, "tq", "tpage", values, timerange.Requested(ctx, h.History, values, h.Now()))
}

// dashboard answers GET /: the figures of the cluster, now and over a range.
func (h *Pages) dashboard(c echo.Context, scope access.Scope) error {
	ctx := c.Request().Context()
	q := h.dashboardQuery(ctx, c.QueryParams())
	s, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return err
	}
	page, err := h.dashboardPage(ctx, scope, s, q, cache.NewExpiring())
	if err != nil {
		return err
	}
	page.Controls = q.Controls("Dashboard", s, true)
	page.RangeChosen = timerange.Chosen(c.QueryParams()) || c.QueryParam("by") != ""
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Charts, page.Stream = "Dashboard", "dashboard", true, urls.With(urls.DashboardEvents, q.Values)
	return web.Render(c, http.StatusOK, dashboardviews.Dashboard(page))
}

// dashboardEvents answers GET /events/dashboard with the live part of the same page.
func (h *Pages) dashboardEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values := c.QueryParams()
		part := web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: console.FiguresMinGap}
		return h.StreamWithin(s, c, "dashboard", h.dashboardQuery(c.Request().Context(), values).Values, part, func(scope access.Scope) web.RenderFunc {
			kept := cache.NewExpiring()
			return func(ctx context.Context) (templ.Component, error) {
				snapshot, err := h.Capacity.Within(ctx, scope)
				if err != nil {
					return nil, err
				}
				page, err := h.dashboardPage(ctx, scope, snapshot, h.dashboardQuery(ctx, values), kept)
				return dashboardviews.DashboardLive(page), err
			}
		})
	}
}

func (h *Pages) dashboardPage(ctx context.Context, scope access.Scope, s *capacity.Snapshot, q figures.Query, kept *cache.Expiring) (dashboardviews.DashboardPage, error) {
	resource := q.Counted(s)
	page := dashboardviews.DashboardPage{Stats: clusterStats(s, q.Pool), Pools: poolTable(q, s)}
	listed := q.TeamLines(s, resource)
	page.Teams = q.TeamTable(listed, resource, dashboardTeams)
	page.Teams.AllURL = q.Seen(urls.Teams)
	list, class, err := h.Classes.Over(ctx, scope, q.Over)
	if err != nil {
		return page, err
	}
	page.Stats = slices.Insert(page.Stats, 3, taskStat(list))
	if q.Pool != "" {
		page.Stats[3].Note = format.JoinedBy(", ", page.Stats[3].Note, wholeCluster)
	}
	classes := h.Classes.Table(ctx, scope, list, nil, class)
	page.Classes, page.ClassNote, page.ClassLeft, page.ClassCSVURL = classes.Rows, classes.Note, classes.Left, urls.With(urls.ClassesCSV, rangeValues(q.Over))
	if q.Pool != "" {
		page.ClassNote = format.JoinedBy(", ", wholeCluster, page.ClassNote)
		page.Teams.Note = format.JoinedBy("; ", page.Teams.Note, "tasks: "+wholeCluster)
	}
	page.Trends = h.Classes.Trends(ctx, scope, list.Teams, q.Over, q.Values, func(by string) string { return q.With("by", by) + "#trends" })
	if page.Loops, err = taskpages.LoopNotice(ctx, h.Tasks, scope); err != nil {
		return page, err
	}
	if page.Mine, err = h.mine(ctx, scope); err != nil {
		return page, err
	}
	page.UsageChart = h.usageChart(ctx, s, q, resource, kept)
	if page.Hardware, err = h.HardwarePages.Section(ctx, scope, q.Pool, q.Over); err != nil {
		return page, err
	}
	tables := []string{page.Teams.CSVURL, page.ClassCSVURL, page.Pools.CSVURL}
	if page.Hardware.CSVURL != "" {
		tables = append(tables, page.Hardware.CSVURL)
	}
	page.ExportURL = urls.ExportOf(tables...)
	return page, nil
}

func rangeValues(r timerange.Range) url.Values {
	values := url.Values{}
	r.SetValues(values)
	return values
}

// Pages answers the routes of the dashboard.
type Pages struct {
	*console.Console
	History       console.History // nil for none
	Classes       *classstats.Stats
	HardwarePages *hardware.Pages
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Dashboard, h.Within(h.dashboard))
	s.Events(urls.DashboardEvents, h.dashboardEvents(s))
	s.Page(urls.CapacityCSV, h.Within(h.capacityCSV))
}
