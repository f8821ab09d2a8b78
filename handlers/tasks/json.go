package tasks

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// taskNamesJSON are the fields that every list of tasks has.
type taskNamesJSON struct {
	Namespace     string `json:"namespace"`
	Kind          string `json:"kind"`
	Name          string `json:"name"`
	Path          string `json:"path"` // of its page
	Team          string `json:"team,omitempty"`
	PriorityClass string `json:"priorityClass,omitempty"`
	Priority      int32  `json:"priority"`
	Reason        string `json:"reason"`
}

func taskNames(item queries.Item) taskNamesJSON {
	return taskNamesJSON{
		Namespace: item.Namespace, Kind: item.Kind, Name: item.Name, Path: urls.Task(item.Task), Team: item.Team,
		PriorityClass: format.ClassName(item.PriorityClass), Priority: item.Priority, Reason: ListReason(item),
	}
}

// tasksAnswer is the answer of GET /tasks.json.
type tasksAnswer struct {
	At    time.Time  `json:"at"`
	Total int        `json:"total"` // tasks that the filters select
	Page  int        `json:"page"`
	Pages int        `json:"pages"`
	Tasks []taskJSON `json:"tasks"`
}

type taskJSON struct {
	taskNamesJSON
	Status        string                  `json:"status"`
	Position      int                     `json:"position,omitempty"`     // in its queue
	Resources     map[string]*json.Number `json:"resources"`              // that it uses, or requests
	Accelerators  int64                   `json:"accelerators,omitempty"` // of these, of all kinds
	Pools         []string                `json:"pools,omitempty"`
	Submitted     time.Time               `json:"submitted"`
	WaitedSeconds json.Number             `json:"waitedSeconds"`
	RanSeconds    json.Number             `json:"ranSeconds"`
	Preemptions   int                     `json:"preemptions"`
	SubmittedBy   string                  `json:"submittedBy,omitempty"`
	Completed     *completedJSON          `json:"completed,omitempty"` // of a Job of several completions, such as an array
	UID           string                  `json:"uid"`
	Progress      *progressJSON           `json:"progress,omitempty"` // of a training that reports it; not in lists
}

// completedJSON is how many completions of a Job succeeded.
type completedJSON struct {
	Done int32 `json:"done"`
	Of   int32 `json:"of"`
}

func completedOf(t *tasks.Task) *completedJSON {
	if t.Completed.Of == 0 {
		return nil
	}
	return &completedJSON{t.Completed.Done, t.Completed.Of}
}

// tasksJSON answers GET /tasks.json: the rows of one page of the list.
func (h *Pages) tasksJSON(c echo.Context, scope access.Scope) error {
	q := h.taskQuery(c.QueryParams())
	q.Explain, q.Patience = true, filePatience
	if c.QueryParam("mine") == "true" {
		q.SubmittedBy = console.UserOf(c).Name
	}
	teams, err := h.TeamsOf(c.Request().Context(), q.department, q.teams)
	if err != nil {
		return err
	}
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, q.Query, teams)
	if err != nil {
		return err
	}
	for _, team := range q.teams {
		if strings.HasPrefix(c.Path(), web.APIPrefix) && !slices.Contains(list.Teams, team) {
			return &governance.Error{Kind: governance.Invalid, Op: "list tasks", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "team", Message: "there is no team " + team + ", or you may not see it"}}}
		}
	}
	now := h.Now()
	answer := tasksAnswer{At: now.UTC(), Total: list.Total, Page: list.Page, Pages: list.Pages, Tasks: []taskJSON{}}
	for _, t := range list.Items {
		answer.Tasks = append(answer.Tasks, fieldsOf(t, now))
	}
	return c.JSON(http.StatusOK, answer)
}

// fieldsOf returns the fields of a task in a list.
func fieldsOf(t queries.Item, now time.Time) taskJSON {
	return taskJSON{
		taskNamesJSON: taskNames(t), Status: stateLabel(t.Task), Position: t.Position, Resources: format.JSONAmounts(t.Resources()), Accelerators: int64(t.Resources().Accelerators()), Pools: t.Pools, Submitted: t.Submitted.UTC(),
		WaitedSeconds: json.Number(format.Seconds(t.Waited(now))), RanSeconds: json.Number(format.Seconds(t.Ran(now))), Preemptions: int(t.Preemptions),
		SubmittedBy: t.SubmittedBy, Completed: completedOf(t.Task), UID: t.UID,
	}
}

// getTask answers GET /tasks/{namespace}/{kind}/{name} of the API.
func (h *Pages) getTask(c echo.Context) error {
	t, err := h.Tasks.Task(c.Request().Context(), console.UserOf(c), address(c, c.QueryParam("uid")), filePatience)
	if err != nil {
		return err
	}
	fields := fieldsOf(t, h.Now())
	fields.Progress = progressFields(h.progressOf(c.Request().Context(), console.UserOf(c), t.Task))
	return c.JSON(http.StatusOK, fields)
}

// whyAnswer is the answer of GET …/why.json.
type whyAnswer struct {
	At        time.Time                `json:"at"`
	Namespace string                   `json:"namespace"`
	Kind      string                   `json:"kind"`
	Name      string                   `json:"name"`
	Path      string                   `json:"path"`
	Team      string                   `json:"team,omitempty"`
	Status    string                   `json:"status"`
	Position  string                   `json:"position,omitempty"` // in its queue
	Why       *taskviews.Why           `json:"why,omitempty"`      // absent if there is nothing to explain
	Estimate  *taskviews.StartEstimate `json:"estimate,omitempty"` // of the start
}

// whyJSON answers GET /tasks/{namespace}/{kind}/{name}/why.json: why a task waits, what
// would start it and when it probably starts, in the words of its page.
func (h *Pages) whyJSON(c echo.Context) error {
	d, err := h.Tasks.Detail(c.Request().Context(), console.UserOf(c), c.Param("namespace"), c.Param("kind"), c.Param("name"), c.QueryParam("uid"))
	if err != nil {
		return err
	}
	now := h.Now()
	answer := whyAnswer{At: now.UTC(), Namespace: d.Namespace, Kind: d.Kind, Name: d.Name, Path: urls.Task(d.Task), Team: d.Team, Status: stateLabel(d.Task), Why: WhyOf(d), Estimate: EstimateOf(d, h.Starts, now)}
	if p := positionOf(d, now); p != nil {
		answer.Position = p.Text
	}
	return c.JSON(http.StatusOK, answer)
}
