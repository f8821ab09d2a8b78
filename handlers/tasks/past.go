package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

const (
	pastPageSize = 100
	pastCSVSize  = 50_000 // largest number of tasks in a file
)

// NoHistory is shown if history is off.
const NoHistory = "No history is kept here. An admin can enable it."

// HistoryUnavailable returns the sentence that is shown if history cannot be read.
func HistoryUnavailable(err error) string {
	return "History cannot be read now: " + historyTrouble(err) + " What is here now is not affected."
}

// pastQuery is the query in the address of a list of past tasks.
type pastQuery struct {
	listing.Address
	team, class, kind string
	department        string
	text, problem     string // problem is a sentence about an invalid day
	from, to          time.Time
	page              int
}

func parsePastQuery(values url.Values) pastQuery {
	q := pastQuery{Address: listing.NewAddress(urls.PastTasks, "page"), page: listing.PageOf(values.Get("page"))}
	one := func(name string) string { return q.Take(values, name) }
	q.team, q.class, q.kind, q.text = one("team"), one("class"), one("kind"), one("q")
	q.department = one("department")
	q.from, q.to, q.problem = q.TakeDays(values)
	return q
}

// historyQuery converts q to a query for the task records of the requested teams.
func (h *Pages) historyQuery(ctx context.Context, q pastQuery, scope access.Scope, there []string) (history.Query, error) {
	asked := history.Query{Kind: q.kind, NameContains: q.text, From: q.from, To: q.to}
	var teams []string
	if q.team != "" {
		teams = []string{q.team}
	}
	teams, err := h.TeamsOf(ctx, q.department, teams)
	asked.Teams = classstats.VisibleTeams(scope, there, teams)
	if q.class != "" {
		asked.PriorityClasses = classstats.Classes([]string{q.class})
	}
	return asked, err
}

// PastTasks returns a page of finished tasks within a scope, and whether there are
// more.
func PastTasks(ctx context.Context, past console.History, scope access.Scope, q history.Query, page, size int) (found []history.Task, more bool, err error) {
	if q.Teams != nil && len(q.Teams) == 0 {
		return nil, false, nil
	}
	q.Finished, q.Limit = true, page*size+1
	if found, err = past.Tasks(ctx, q); err != nil {
		return nil, false, err
	}
	found, more = found[min(len(found), (page-1)*size):min(len(found), page*size)], len(found) > page*size
	// Records are selected by team name. A team of that name may have had tasks in a
	// namespace outside the scope: they are not shown either.
	return slices.DeleteFunc(slices.Clone(found), func(t history.Task) bool { return !scope.Includes(t.Namespace) }), more, nil
}

// past answers GET /tasks/past: the list of finished tasks.
func (h *Pages) past(c echo.Context, scope access.Scope) error {
	ctx := c.Request().Context()
	list, err := h.Tasks.ListWithin(ctx, scope, index.Query{}, nil)
	if err != nil {
		return err
	}
	q := parsePastQuery(c.QueryParams())
	page := taskviews.PastPage{
		Chrome: h.Chrome(c), Action: urls.PastTasks, Text: q.text, From: q.Values.Get("from"), To: q.Values.Get("to"), Wrong: q.problem, Filters: q.filters(list),
		CSVURL: q.URL(urls.PastTasksCSV, "page", ""),
	}
	page.Title, page.Active = "Past tasks", "tasks"
	if page.Filters, err = h.OfferDepartments(c, page.Filters, q.department); err != nil {
		return err
	}
	if len(q.Values) > 0 {
		page.ClearURL = urls.PastTasks
	}
	switch {
	case h.History == nil:
		page.Trouble = NoHistory
		return web.Render(c, http.StatusOK, taskviews.Past(page))
	case q.problem != "":
		return web.Render(c, http.StatusUnprocessableEntity, taskviews.Past(page))
	}
	asked, err := h.historyQuery(ctx, q, scope, list.Teams)
	if err != nil {
		return err
	}
	found, more, err := PastTasks(ctx, h.History, scope, asked, q.page, pastPageSize)
	if err != nil {
		page.Trouble = HistoryUnavailable(err)
	}
	for _, t := range found {
		page.Rows = append(page.Rows, PastRow(t))
	}
	page.Pager = listing.Pager(q.page, pastPageSize, len(found), more, func(n string) string { return q.With("page", n) })
	return web.Render(c, http.StatusOK, taskviews.Past(page))
}

// pastCSV answers GET /tasks/past.csv: all tasks of such a list.
func (h *Pages) pastCSV(c echo.Context, scope access.Scope) error {
	found, _, err := h.pastFile(c, scope, parsePastQuery(c.QueryParams()), 1, pastCSVSize)
	if err != nil {
		return err
	}
	rows := [][]string{{"namespace", "kind", "name", "uid", "team", "status", "priority class", "priority", "GPUs", "Neuron devices", "vCPU", "memory GiB", "pool", "submitted", "ended", "deleted", "ran s", "preemptions", "submitted by", "other resources"}}
	for _, t := range found {
		asked := func(name string) string { return quota.Number(name, t.Requests[name]) }
		rows = append(rows, []string{
			t.Namespace, t.Kind, t.Name, t.UID, t.Team, t.State, format.ClassName(t.PriorityClass), strconv.Itoa(int(t.Priority)), asked(catalog.GPU), asked(catalog.Neuron), asked(catalog.CPU), asked(catalog.Memory),
			strings.Join(t.Pools, " "), format.Time(t.SubmittedAt), format.Time(t.FinishedAt), format.Time(t.DeletedAt), format.Seconds(t.RunTime), strconv.Itoa(int(t.Preemptions)), t.SubmittedBy, otherResources(t.Requests),
		})
	}
	return console.CSVFile(c, "past-tasks", rows)
}

// pastFile returns a page of tasks for a file, which cannot show why it has none.
func (h *Pages) pastFile(c echo.Context, scope access.Scope, q pastQuery, page, size int) (found []history.Task, more bool, err error) {
	ctx := c.Request().Context()
	list, err := h.Tasks.ListWithin(ctx, scope, index.Query{}, nil)
	switch {
	case err != nil:
		return nil, false, err
	case h.History == nil:
		return nil, false, &governance.Error{Kind: governance.NotFound, Op: "list past tasks", Message: NoHistory}
	case q.problem != "":
		return nil, false, &governance.Error{Kind: governance.Invalid, Op: "list past tasks", Message: q.problem}
	}
	asked, err := h.historyQuery(ctx, q, scope, list.Teams)
	if err != nil {
		return nil, false, err
	}
	if found, more, err = PastTasks(ctx, h.History, scope, asked, page, size); err != nil {
		err = &governance.Error{Kind: governance.Unavailable, Op: "list past tasks", Message: HistoryUnavailable(err), Err: err}
	}
	return found, more, err
}

// pastAnswer is a page of tasks that ended, also of deleted ones.
type pastAnswer struct {
	Page  int            `json:"page"`
	More  bool           `json:"more"` // older ones are on the next page
	Tasks []pastTaskJSON `json:"tasks"`
}

type pastTaskJSON struct {
	Namespace     string                  `json:"namespace"`
	Kind          string                  `json:"kind"`
	Name          string                  `json:"name"`
	UID           string                  `json:"uid"`
	Team          string                  `json:"team,omitempty"`
	Status        string                  `json:"status"`
	PriorityClass string                  `json:"priorityClass,omitempty"`
	Pools         []string                `json:"pools,omitempty"`
	Resources     map[string]*json.Number `json:"resources"`              // that it requested
	Accelerators  int64                   `json:"accelerators,omitempty"` // of these, of all kinds
	Submitted     time.Time               `json:"submitted"`
	Ended         *time.Time              `json:"ended,omitempty"`
	Deleted       *time.Time              `json:"deleted,omitempty"`
	RanSeconds    json.Number             `json:"ranSeconds"`
	Preemptions   int                     `json:"preemptions"`
	SubmittedBy   string                  `json:"submittedBy,omitempty"`
}

// pastJSON answers GET /past-tasks of the API.
func (h *Pages) pastJSON(c echo.Context, scope access.Scope) error {
	q := parsePastQuery(c.QueryParams())
	found, more, err := h.pastFile(c, scope, q, q.page, pastPageSize)
	if err != nil {
		return err
	}
	answer := pastAnswer{Page: q.page, More: more, Tasks: []pastTaskJSON{}}
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return new(t.UTC())
	}
	for _, t := range found {
		answer.Tasks = append(answer.Tasks, pastTaskJSON{
			Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Team: t.Team, Status: t.State, PriorityClass: format.ClassName(t.PriorityClass), Pools: t.Pools, Resources: format.JSONAmounts(t.Requests), Accelerators: int64(quota.Resources(t.Requests).Accelerators()),
			Submitted: t.SubmittedAt.UTC(), Ended: at(t.FinishedAt), Deleted: at(t.DeletedAt), RanSeconds: json.Number(format.Seconds(t.RunTime)), Preemptions: int(t.Preemptions), SubmittedBy: t.SubmittedBy,
		})
	}
	return c.JSON(http.StatusOK, answer)
}

func (q pastQuery) filters(l queries.List) []views.Filter {
	classes := slices.DeleteFunc(slices.Clone(l.PriorityClasses), func(class string) bool { return class == "" })
	return []views.Filter{
		q.Filter("team", "Team", "All teams", l.Teams...),
		classstats.Filter(q.class, slices.Insert(classes, 0, "")),
		q.Filter("kind", "Kind", "All kinds", l.Kinds...),
	}
}

// pastStatus returns the last recorded state of a task, and marks tasks that were
// deleted.
func pastStatus(t history.Task) views.Status {
	s := views.Status{Tone: cmp.Or(tones[tasks.State(t.State)], "idle"), Label: cmp.Or(t.State, "Not known")}
	if !t.DeletedAt.IsZero() {
		s.Text = "deleted"
		if !tasks.State(t.State).Finished() { // it was deleted before it finished
			s = views.Status{Tone: "idle", Label: "Deleted", Text: "while " + strings.ToLower(s.Label)}
		}
	}
	return s
}

func PastRow(t history.Task) views.PastRow {
	row := views.PastRow{
		ID: "past-" + t.UID, Task: views.TaskLink{Name: t.Name, URL: urls.PastTask(t)}, Kind: t.Kind, Status: pastStatus(t), Team: format.OrDash(t.Team), Namespace: t.Namespace,
		PriorityClass: format.OrDash(format.ClassName(t.PriorityClass)), Requests: format.OrDash(format.Amounts(t.Requests)), Pool: format.OrDash(strings.Join(t.Pools, ", ")), Submitted: format.Time(t.SubmittedAt),
		Ended: format.Time(t.FinishedAt), Ran: "–", Preemptions: "–",
	}
	if row.Ended == "" {
		row.Ended = format.Time(t.DeletedAt)
	}
	if t.RunTime > 0 {
		row.Ran = format.Duration(t.RunTime)
	}
	if t.Preemptions > 0 {
		row.Preemptions = format.Thousands(int64(t.Preemptions))
	}
	return row
}

// historyTrouble returns the sentence of an error of history that readers see.
func historyTrouble(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message != "" {
		return ours.Message
	}
	return "The database does not answer."
}
