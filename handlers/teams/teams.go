package teams

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// teamsOnPage is the number of teams on a page of the list.
const teamsOnPage = 100

func (h *Pages) teamsQuery(ctx context.Context, user governance.User, values url.Values) (q figures.Query, err error) {
	q = figures.Parse(urls.Teams, "q", "page", values, timerange.Parse(values, timerange.UsualRange, h.Now()))
	q.Tree, err = h.Departments.State(ctx, user)
	return q, err
}

// departmentsTable returns the tree of departments above the list of teams.
func (h *Pages) departmentsTable(ctx context.Context, q figures.Query, s *capacity.Snapshot) (views.DepartmentTable, error) {
	if !q.Tree.Any() {
		return views.DepartmentTable{}, nil
	}
	of, err := h.Departments.Figures(ctx, q.Tree, func(team string) bool {
		return slices.ContainsFunc(s.Teams, func(t capacity.TeamSnapshot) bool { return t.Name == team })
	})
	return q.Departments(q.Tree, of, q.Counted(s)), err
}

// teams answers GET /teams: quota and usage of all teams.
func (h *Pages) teams(c echo.Context, scope access.Scope) error {
	q, err := h.teamsQuery(c.Request().Context(), console.UserOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	shares, err := h.sharesWithin(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	tree, err := h.departmentsTable(c.Request().Context(), q, s)
	if err != nil {
		return err
	}
	page := teamviews.TeamsPage{Departments: tree, Shares: shares, Controls: q.Controls("Teams", s, false), Teams: q.TeamTable(q.TeamLines(s, resource), resource, teamsOnPage)}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Teams", "teams", urls.With(urls.TeamsEvents, q.Values)
	if deleted := c.QueryParam("deleted"); deleted != "" && q.Tree.Governed.All && quota.CheckDepartmentName(deleted) == "" {
		page.Notice = "Department " + deleted + " was deleted."
		if q.Tree.Find(deleted) != nil {
			page.Notice = "Department " + deleted + " is being deleted."
		}
	}
	return web.Render(c, http.StatusOK, teamviews.Teams(page))
}

// teamsEvents answers GET /events/teams with the live part of the same page.
func (h *Pages) teamsEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q, err := h.teamsQuery(c.Request().Context(), console.UserOf(c), c.QueryParams())
		if err != nil {
			return err
		}
		changed := func(ctx context.Context) <-chan struct{} { return cluster.Either(ctx, h.CapacityChanges, h.Advice) }
		return s.Stream(c, web.Part{Changed: changed, MinGap: console.FiguresMinGap, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
			scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
			if governance.KindOf(err) == governance.Outside {
				return "nothing of teams", func(context.Context) (templ.Component, error) { return views.NoTeamCard("teams"), nil }, nil
			}
			if err != nil {
				return "", nil, err
			}
			reader, err := h.Departments.State(ctx, console.UserOf(c))
			return strings.Join([]string{"teams", q.Values.Encode(), scope.Key(), reader.Key()}, " "), func(ctx context.Context) (templ.Component, error) {
				return h.teamsLive(ctx, q, scope, reader)
			}, err
		}}, h.Frame(c))
	}
}

// teamsLive returns the live part of the list, as all see it with this scope who see the same
// departments as reader.
func (h *Pages) teamsLive(ctx context.Context, q figures.Query, scope access.Scope, reader departments.State) (templ.Component, error) {
	var err error
	if q.Tree, err = h.Departments.Again(ctx, reader); err != nil {
		return nil, err
	}
	s, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return nil, err
	}
	tree, err := h.departmentsTable(ctx, q, s)
	if err != nil {
		return nil, err
	}
	resource := q.Counted(s)
	shares, err := h.sharesWithin(ctx, scope)
	if err != nil {
		return nil, err
	}
	return teamviews.TeamsLive(tree, q.TeamTable(q.TeamLines(s, resource), resource, teamsOnPage), shares), nil
}

// teamsCSV answers GET /teams.csv: all teams that match, in one resource.
func (h *Pages) teamsCSV(c echo.Context, scope access.Scope) error {
	q, err := h.teamsQuery(c.Request().Context(), console.UserOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	list := q.TeamLines(s, resource)
	rows := [][]string{{"team", "name", "namespace", "weight", "pool", "resource", "unit", "allocated", "held", "own", "borrowed", "lent", "utilization %", "running tasks", "waiting tasks", "growth", "department"}}
	for _, f := range list.Found {
		row := []string{f.Team.Name, f.Team.DisplayName, f.Team.Namespace, strconv.Itoa(int(f.Team.Weight)), q.Pool, resource, format.Unit(resource)}
		for _, amount := range []resources.Amount{f.Nominal, f.Usage, f.Own, f.Borrowed, f.LentToCohort} {
			row = append(row, quota.Number(resource, amount))
		}
		utilization := strings.TrimSuffix(usage.Percent(f.Usage, f.Nominal), " %")
		if f.Nominal <= 0 {
			utilization = ""
		}
		rows = append(rows, append(row, utilization, strconv.Itoa(f.Running), strconv.Itoa(f.Waiting), quota.Number(resource, f.Growth), q.Tree.DepartmentOf(f.Team.Name)))
	}
	return console.CSVFile(c, "teams", rows)
}

// teamsAnswer is the answer of GET /teams.json. Amounts are vCPU and memory in GiB, and
// counts of others.
type teamsAnswer struct {
	At       time.Time  `json:"at"`
	Resource string     `json:"resource"`
	Unit     string     `json:"unit"`
	Pool     string     `json:"pool,omitempty"` // empty for all
	Total    int        `json:"total"`          // teams that the filters select
	Page     int        `json:"page"`
	Pages    int        `json:"pages"`
	Teams    []teamJSON `json:"teams"`
}

type teamJSON struct {
	Name        string       `json:"name"`
	DisplayName string       `json:"displayName,omitempty"`
	Department  string       `json:"department,omitempty"`
	Namespace   string       `json:"namespace"`
	Path        string       `json:"path"` // of its page
	Weight      int64        `json:"weight"`
	Allocated   *json.Number `json:"allocated"`
	Used        *json.Number `json:"used"`
	Own         *json.Number `json:"own"`
	Borrowed    *json.Number `json:"borrowed"`
	Lent        *json.Number `json:"lent"`
	Growth      *json.Number `json:"growth"`
	Utilization json.Number  `json:"utilizationPercent,omitempty"` // absent without quota
	Running     int          `json:"runningTasks"`
	Waiting     int          `json:"waitingTasks"`
}

// teamsJSON answers GET /teams.json: the rows of one page of the list.
func (h *Pages) teamsJSON(c echo.Context, scope access.Scope) error {
	q, err := h.teamsQuery(c.Request().Context(), console.UserOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	found := q.TeamLines(s, resource).Found
	from, to, page := listing.Bounds(q.Page, teamsOnPage, len(found))
	answer := teamsAnswer{
		At: h.Now().UTC(), Resource: resource, Unit: format.Unit(resource), Pool: q.Pool, Total: len(found),
		Page: page, Pages: max(1, (len(found)+teamsOnPage-1)/teamsOnPage), Teams: []teamJSON{},
	}
	for _, f := range found[from:to] {
		amount := func(n resources.Amount) *json.Number { return format.JSONAmount(resource, n) }
		t := teamJSON{
			Name: f.Team.Name, DisplayName: f.Team.DisplayName, Department: q.Tree.DepartmentOf(f.Team.Name), Namespace: f.Team.Namespace, Path: figures.TeamURL(f.Team), Weight: int64(f.Team.Weight),
			Allocated: amount(f.Nominal), Used: amount(f.Usage), Own: amount(f.Own), Borrowed: amount(f.Borrowed), Lent: amount(f.LentToCohort), Growth: amount(f.Growth),
			Running: f.Running, Waiting: f.Waiting,
		}
		if f.Nominal > 0 {
			t.Utilization = json.Number(strings.TrimSuffix(usage.Percent(f.Usage, f.Nominal), " %"))
		}
		answer.Teams = append(answer.Teams, t)
	}
	return c.JSON(http.StatusOK, answer)
}
