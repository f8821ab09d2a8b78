package tasks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// ExplainPatience is how long a page waits for explanations that are not computed
// yet: enough for all of them in most clusters, and a fraction of the time budget of
// a page in the largest.
const ExplainPatience = 25 * time.Millisecond

// mostSubmitTeams is up to how many teams the page offers to submit a task to.
const mostSubmitTeams = 20

// tasks answers GET /tasks: the list of tasks. ?deleted=task follows the deletion of
// a task.
func (h *Pages) tasks(c echo.Context, scope access.Scope) error {
	q := h.taskQuery(c.QueryParams())
	q.Patience = ExplainPatience
	if c.QueryParams().Has("cols") { // sent by the form, which sends all values
		return c.Redirect(http.StatusSeeOther, q.With())
	}
	page, err := h.tasksPage(c.Request().Context(), scope, q)
	if err != nil {
		return err
	}
	offerMine(page.Filters, console.UserOf(c))
	if page.Filters, err = h.OfferDepartments(c, page.Filters, q.department); err != nil {
		return err
	}
	page.Many = h.manyForm(q)
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Tasks", "tasks", q.URL(urls.Tasks+"/events")
	if c.QueryParam("deleted") == deletedTask {
		page.Notice = "Task deleted. It leaves this list when its job is deleted from the cluster."
	}
	return web.Render(c, http.StatusOK, taskviews.Tasks(page))
}

// tasksEvents answers GET /tasks/events with the live part of the same page.
func (h *Pages) tasksEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := h.taskQuery(c.QueryParams())
		return h.StreamWithin(s, c, "tasks", q.Values, web.Part{Changed: h.Changes.Subscribe}, func(scope access.Scope) web.RenderFunc {
			return func(ctx context.Context) (templ.Component, error) {
				page, err := h.tasksPage(ctx, scope, q)
				return taskviews.TasksLive(page), err
			}
		})
	}
}

func (h *Pages) tasksPage(ctx context.Context, scope access.Scope, q taskQuery) (taskviews.TasksPage, error) {
	q.Explain = true
	teams, err := h.TeamsOf(ctx, q.department, q.teams)
	if err != nil {
		return taskviews.TasksPage{}, err
	}
	list, err := h.Tasks.ListWithin(ctx, scope, q.Query, teams)
	if err != nil {
		return taskviews.TasksPage{}, err
	}
	page := taskviews.TasksPage{
		Summary: summary(list, q), Stats: taskStats(list), Tabs: q.tabs(list), Tab: q.Values.Get("tab"), Text: q.Text, Filters: q.filters(list), Heads: q.heads(), Columns: q.columns(), Action: urls.Tasks,
		Sort: q.Values.Get("sort"), Order: q.Values.Get("order"), Range: q.Values.Get("range"), CSVURL: q.URL(tasksCSVURL, "page", ""),
	}
	if page.Loops, err = LoopNotice(ctx, h.Tasks, scope); err != nil {
		return page, err
	}
	if h.History != nil {
		page.PastURL = urls.PastTasks
	}
	if q.Filtered() || len(teams) > 0 {
		page.ClearURL = q.With("team", "", "department", "", "class", "", "status", "", "kind", "", "pool", "", "q", "", "page", "")
	}
	if teams := q.teams; len(teams) == 1 && slices.Contains(list.Teams, teams[0]) {
		page.OneTeam, page.SubmitURL = teams[0], urls.TeamSubmit(teams[0])
	} else if len(list.Teams) == 1 {
		page.SubmitURL = urls.TeamSubmit(list.Teams[0])
	} else if len(list.Teams) <= mostSubmitTeams {
		for _, team := range list.Teams {
			page.SubmitTeams = append(page.SubmitTeams, taskviews.SubmitTeam{Name: team, URL: urls.TeamSubmit(team)})
		}
	}
	if classes := h.Classes.Table(ctx, scope, list, teams, q.classRange); len(classes.Rows) > 0 {
		page.Classes, page.ClassNote, page.ClassLeft, page.Ranges = classes.Rows, classes.Note, classes.Left, q.ranges(h.History != nil)
	}
	idle := h.Hardware.IdleTasks(ctx)
	for _, item := range list.Items {
		row := Row(item)
		if h.selects() {
			row.Select = item.UID
		}
		row.Size, row.Cells = format.Joined(sizeWords(item), completedWords(item.Task), withoutNode(item.UnscheduledPods)), q.cells(item, h.Now())
		if i, is := idle[item.UID]; is {
			row.Idle = i.Words(h.Now())
		}
		page.Tasks = append(page.Tasks, row)
	}
	from := (list.Page - 1) * index.PageSize
	page.Pager = q.Pager(list.Page, from, from+len(list.Items), list.Total)
	return page, nil
}

// summary describes what the list contains: its tab, or its filters.
func summary(list queries.List, q taskQuery) string {
	if q.Filtered() || len(q.teams) > 0 || q.department != "" {
		return format.Tasks(list.Total) + " found"
	}
	var parts []string
	for _, state := range tasks.States {
		if n := list.States[state]; n > 0 && state.Finished() == (q.Phase == index.Finished) {
			parts = append(parts, fmt.Sprintf("%s %s", format.Thousands(int64(n)), strings.ToLower(string(state))))
		}
	}
	return strings.Join(parts, ", ")
}

// taskStats counts waiting and running tasks of those that the filters select, of whatever
// state, for the top of the page.
func taskStats(list queries.List) []views.Stat {
	waiting, running := list.States[tasks.Pending]+list.States[tasks.Preempted], 0
	for state, n := range list.States {
		if state.UsesQuota() {
			running += n
		}
	}
	stats := []views.Stat{
		{ID: "stat-waiting", Label: "Waiting tasks", Value: format.Thousands(int64(waiting))},
		{ID: "stat-running", Label: "Running tasks", Value: format.Thousands(int64(running))},
		{ID: "stat-stopped", Label: "Stopped tasks", Value: format.Thousands(int64(list.States[tasks.Stopped]))},
	}
	if n := list.States[tasks.Preempted]; n > 0 {
		stats[0].Note = format.Thousands(int64(n)) + " preempted"
	}
	if n := list.States[tasks.Starting]; n > 0 {
		stats[1].Note = format.Thousands(int64(n)) + " starting"
	}
	return stats
}

// tones maps states to the tones of their tags.
var tones = map[tasks.State]string{
	tasks.Running: "ok", tasks.Starting: "ok", tasks.Succeeded: "idle",
	tasks.Pending: "wait", tasks.Preempted: "pre", tasks.Stopping: "pre",
	tasks.Stopped: "idle", tasks.Failed: "bad",
}

// Row returns the row of a task, without cells.
func Row(item queries.Item) taskviews.TaskRow {
	return taskviews.TaskRow{
		ID: "task-" + item.UID, Name: item.Name, URL: urls.Task(item.Task),
		Status: views.Status{Tone: tones[item.State], Label: stateLabel(item.Task)}, Reason: ListReason(item),
	}
}

// ListReason returns one sentence about why a task does not run, or not with all its
// pods: the headline of its page. Kueue's message is on that page only.
func ListReason(item queries.Item) string {
	switch {
	case item.State == tasks.Stopped: // the status shows it
		return ""
	case item.Brief != nil:
		_, text := headline(item.Brief, teamWords(item.Team))
		return text
	case item.State.Waiting():
		return "Waiting for quota."
	case item.State == tasks.Stopping:
		return "Its pods are ending."
	case item.NoWorkload, item.State.Finished():
		return item.Message
	}
	return ""
}

// sizeWords describes how many of its pods a task has, if not all, and the sizes of an
// elastic task.
func sizeWords(t queries.Item) string {
	switch p := t.Policy; {
	case p != nil && t.State.UsesQuota():
		return fmt.Sprintf("%d pods (%d–%d)", t.Size.Admitted, p.MinReplicas, p.MaxReplicas)
	case p != nil:
		return podRange(*p)
	case t.Growing() && t.IsServing():
		return replicaWords(t.Task)
	case t.Growing() && t.PendingMessage != "":
		return fmt.Sprintf("%d of %d pods; wants more", t.Size.Admitted, t.Size.Wanted)
	case t.Growing():
		return fmt.Sprintf("%d of %d pods", t.Size.Admitted, t.Size.Wanted)
	}
	return ""
}

// withoutNode describes pods that the scheduler has not placed; empty for none.
func withoutNode(n int) string {
	if n == 0 {
		return ""
	}
	return format.Count(n, "pod") + " without a node"
}
