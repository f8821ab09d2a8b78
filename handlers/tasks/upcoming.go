package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// filePatience is how long a file waits for explanations that are not computed yet: no
// later version of it follows, as on a page.
const filePatience = 2 * time.Second

// upcomingQuery is the query in the address of the page "Next to start".
type upcomingQuery struct {
	listing.Address
	queries.UpcomingQuery
	department string // of the teams; empty for all
}

func parseUpcomingQuery(values url.Values) upcomingQuery {
	q := upcomingQuery{Address: listing.NewAddress(urls.Queue, "page")}
	q.Teams = q.TakeAll(values, "team")
	q.department = q.Take(values, "department")
	q.Page, _ = strconv.Atoi(q.Take(values, "page"))
	q.PriorityClasses = classstats.Classes(q.TakeAll(values, "class"))
	return q
}

// upcoming answers GET /queue: the waiting tasks of all teams that are next to start.
func (h *Pages) upcoming(c echo.Context, scope access.Scope) error {
	q := parseUpcomingQuery(c.QueryParams())
	q.Patience = ExplainPatience
	page, err := h.upcomingPage(c.Request().Context(), scope, q)
	if err != nil {
		return err
	}
	if page.Filters, err = h.OfferDepartments(c, page.Filters, q.department); err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Next to start", "queue", q.URL(urls.Queue+"/events")
	return web.Render(c, http.StatusOK, taskviews.Upcoming(page))
}

// upcomingEvents answers GET /queue/events with the live part of the same page.
func (h *Pages) upcomingEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := parseUpcomingQuery(c.QueryParams())
		return h.StreamWithin(s, c, "upcoming", q.Values, web.Part{Changed: h.Changes.Subscribe, MinGap: console.FiguresMinGap}, func(scope access.Scope) web.RenderFunc {
			return func(ctx context.Context) (templ.Component, error) {
				page, err := h.upcomingPage(ctx, scope, q)
				return taskviews.UpcomingLive(page), err
			}
		})
	}
}

func (h *Pages) upcomingPage(ctx context.Context, scope access.Scope, q upcomingQuery) (page taskviews.UpcomingPage, err error) {
	if q.Teams, err = h.TeamsOf(ctx, q.department, q.Teams); err != nil {
		return page, err
	}
	u, err := h.Tasks.UpcomingWithin(ctx, scope, q.UpcomingQuery)
	if err != nil {
		return page, err
	}
	page = taskviews.UpcomingPage{Action: urls.Queue, Filters: []views.Filter{q.Filter("team", "Team", "All teams", u.Teams...), classstats.Filter(q.Values.Get("class"), u.PriorityClasses)},
		Fair: u.FairSharing, CSVURL: q.URL(urls.Queue+".csv", "page", ""), JSONURL: q.URL(urls.QueueJSON)}
	page.Tabs = []views.Tab{
		{Label: "Active", URL: urls.Tasks}, {Label: "Queue", URL: urls.Queue, Current: true}, {Label: "Finished", URL: urls.Tasks + "?tab=" + string(index.Finished)},
	}
	if len(q.Teams)+len(q.PriorityClasses) > 0 {
		page.ClearURL = urls.Queue
	}
	from := (u.Page - 1) * index.PageSize
	page.Pager = q.Pager(u.Page, from, from+len(u.Items), u.Total)
	if page.Note = format.Tasks(u.Total) + " waiting"; u.Total < u.Waiting {
		page.Note = fmt.Sprintf("%s of %s waiting", format.Thousands(int64(u.Total)), format.Tasks(u.Waiting))
	}
	for _, item := range u.Items {
		page.Rows = append(page.Rows, upcomingRow(item, h.Now()))
	}
	return page, nil
}

// upcomingColumns are the columns of the page after the name and the status.
var upcomingColumns = []taskColumn{
	columnOf(index.ByTeam), columnOf(index.ByPriorityClass),
	{Head: ui.Head{Label: "Requests"}, class: "wraps", cell: textCell(func(t queries.Item) string { return format.ShortAmounts(t.Requests) })},
	{Head: ui.Head{Label: "Waits since"}, cell: func(t queries.Item, now time.Time) taskviews.TaskCell {
		cell := waitedCell(t, now)
		cell.At = t.WaitingSince.UTC().Format(time.RFC3339)
		return cell
	}},
}

func upcomingRow(item queries.UpcomingItem, now time.Time) taskviews.UpcomingRow {
	row := taskviews.UpcomingRow{TaskRow: Row(item.Item), Order: taskviews.TaskCell{Class: "n", Text: "–"}}
	if item.Order > 0 {
		row.Order.Text = strconv.Itoa(item.Order)
	}
	place := taskviews.TaskCell{Text: format.OrDash(position(item.ClusterQueuePosition))}
	if item.Shared {
		place.Text = "Shared queue"
	}
	row.Cells = append(taskCells(upcomingColumns, item.Item, now), place)
	return row
}

// upcomingFile returns the rows of a file: those of a page, or all.
func (h *Pages) upcomingFile(c echo.Context, scope access.Scope, all bool) (queries.Upcoming, error) {
	q := parseUpcomingQuery(c.QueryParams())
	q.Patience, q.All = filePatience, all
	return h.Tasks.UpcomingWithin(c.Request().Context(), scope, q.UpcomingQuery)
}

// upcomingCSV answers GET /queue.csv: the rows of all pages. The reasons after those of the
// first page are Kueue's.
func (h *Pages) upcomingCSV(c echo.Context, scope access.Scope) error {
	u, err := h.upcomingFile(c, scope, true)
	if err != nil {
		return err
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	heads := []string{"order"}
	var common []csvColumn // with the list of tasks
	for _, column := range tasksCSVColumns {
		if slices.Contains([]index.Column{index.ByName, index.ByKind, index.ByTeam, index.ByPriorityClass, index.ByAccelerator, index.ByCPU, index.ByMemory}, column.of) {
			common, heads = append(common, column), append(heads, column.head)
		}
	}
	heads = append(heads, "waiting since", "waited s", "position", "reason")
	return console.CSVItems(c, "queue", heads, u.Items, func(item queries.UpcomingItem) []string {
		row := []string{number(item.Order)}
		for _, column := range common {
			row = append(row, column.value(item.Item, u.At))
		}
		return append(row, item.WaitingSince.UTC().Format(time.RFC3339), format.Seconds(item.Waited(u.At)), number(item.ClusterQueuePosition), ListReason(item.Item))
	})
}

// upcomingAnswer is the answer of GET /queue.json.
type upcomingAnswer struct {
	At      time.Time          `json:"at"`
	Waiting int                `json:"waiting"` // tasks that the filters select
	Page    int                `json:"page"`
	Pages   int                `json:"pages"`
	Tasks   []upcomingTaskJSON `json:"tasks"`
}

type upcomingTaskJSON struct {
	Order int `json:"order,omitempty"`
	taskNamesJSON
	Requests      map[string]*json.Number `json:"requests"` // vCPU and memory in GiB, others as counts
	WaitingSince  time.Time               `json:"waitingSince"`
	WaitedSeconds json.Number             `json:"waitedSeconds"`
	Position      int                     `json:"position,omitempty"` // in its ClusterQueue
}

// upcomingJSON answers GET /queue.json: the rows of the page.
func (h *Pages) upcomingJSON(c echo.Context, scope access.Scope) error {
	u, err := h.upcomingFile(c, scope, false)
	if err != nil {
		return err
	}
	answer := upcomingAnswer{At: u.At.UTC(), Waiting: u.Total, Page: u.Page, Pages: u.Pages, Tasks: []upcomingTaskJSON{}}
	for _, item := range u.Items {
		t := upcomingTaskJSON{
			Order: item.Order, taskNamesJSON: taskNames(item.Item), Requests: format.JSONAmounts(item.Requests),
			WaitingSince: item.WaitingSince.UTC(), WaitedSeconds: json.Number(format.Seconds(item.Waited(u.At))), Position: item.ClusterQueuePosition,
		}
		answer.Tasks = append(answer.Tasks, t)
	}
	return c.JSON(http.StatusOK, answer)
}
