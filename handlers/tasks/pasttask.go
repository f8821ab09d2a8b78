package tasks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// sameNames limits how many tasks of one name are read.
const sameNames = 20

// recordedTask is a task that no longer exists, as history has it.
type recordedTask struct {
	task  history.Task
	steps []history.Event
	named []history.Task // of the same name
	scope access.Scope   // of the reader
}

// pastTask answers for a task that no longer exists in the cluster with its record
// in history. It returns missing as findPast does.
func (h *Pages) pastTask(c echo.Context, missing error) error {
	past, err := h.findPast(c, missing)
	if err != nil {
		return err
	}
	t := past.task
	redact, err := h.Tasks.Redactor(c.Request().Context(), past.scope)
	if err != nil {
		return err
	}
	elastic, lost := h.elasticOf(c.Request().Context(), c, past.scope, t.UID, nil, endOf(t, h.Now()), nil)
	life := lifeOf(nil, past.steps, h.done(c.Request().Context(), t.UID), t.SubmittedAt, past.scope, redact)
	if elastic == nil {
		lost = lostByPreemption(life, t.Requests, h.starts(c.Request().Context(), t.UID, nil))
	}
	page := pastTaskPage(t, withLost(life, lost))
	page.Elastic = elastic
	source := urls.LinkSource{Namespace: t.Namespace, Team: t.Team, Kind: t.Kind, Task: t.Name, From: t.SubmittedAt, To: firstOf(t.FinishedAt, t.DeletedAt)}
	page.Logs, page.Dashboard = h.External(h.ExternalLogs, source), h.External(h.Dashboard, source)
	page.Others, page.ActivityURL = sameNameLinks(past.named, t.UID), urls.ActivityOf(t.UID)
	// Without history or the cluster, the page omits the button.
	if again, err := h.Again.MayAgainPast(c.Request().Context(), console.UserOf(c), t.Namespace, t.Kind, t.UID); err == nil && again && t.Team != "" {
		page.Actions = &taskviews.TaskActions{Buttons: []views.ActionButton{againButton(t.Team, t.Kind, t.Name, t.UID)}}
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Charts = t.Name, "tasks", page.Elastic != nil
	return web.Render(c, http.StatusOK, taskviews.PastTaskPage(page))
}

// findPast returns the record of the requested task, which no longer exists in the
// cluster. It returns missing if there is no record, or if the user is not allowed to
// see it: the answers must be identical.
func (h *Pages) findPast(c echo.Context, missing error) (past recordedTask, err error) {
	if h.History == nil || governance.KindOf(missing) != governance.NotFound {
		return past, missing
	}
	ctx := c.Request().Context()
	if past.scope, err = h.Tasks.Scope(ctx, console.UserOf(c)); err != nil || !past.scope.Includes(c.Param("namespace")) {
		return past, missing
	}
	unreadable := &governance.Error{Kind: governance.Unavailable, Op: "find past task", Message: "This task does not exist now, and history cannot be read. Try again later."}
	if past.named, err = h.sameName(ctx, c); err != nil {
		unreadable.Err = err
		return past, unreadable
	}
	uid := c.QueryParam("uid")
	if uid == "" && len(past.named) > 0 {
		uid = past.named[0].UID
	}
	if uid == "" {
		return past, missing
	}
	t, steps, found, err := h.History.Timeline(ctx, uid)
	switch {
	case err != nil:
		unreadable.Err = err
		return past, unreadable
	case !found || t.Namespace != c.Param("namespace") || !strings.EqualFold(t.Kind, c.Param("kind")) || t.Name != c.Param("name"):
		return past, missing
	}
	past.task, past.steps = t, steps
	return past, nil
}

// sameName returns the recorded tasks of the requested name, newest first.
func (h *Pages) sameName(ctx context.Context, c echo.Context) ([]history.Task, error) {
	return h.History.Tasks(ctx, history.Query{Namespace: c.Param("namespace"), Kind: c.Param("kind"), Name: c.Param("name"), Limit: sameNames})
}

// sameNameLinks links to all tasks of a name except one.
func sameNameLinks(named []history.Task, but string) (links []taskviews.PastLink) {
	for _, t := range named {
		if t.UID != but {
			links = append(links, taskviews.PastLink{Task: views.TaskLink{Name: t.Name, URL: urls.PastTask(t)}, Status: pastStatus(t), Submitted: format.Time(t.SubmittedAt)})
		}
	}
	return links
}

func pastTaskPage(t history.Task, life []event) taskviews.PastTask {
	p := taskviews.PastTask{
		Name: t.Name, Namespace: t.Namespace, Team: format.OrDash(t.Team), Status: pastStatus(t),
		Submitted: format.Time(t.SubmittedAt), Ended: format.Time(t.FinishedAt), Deleted: format.Time(t.DeletedAt),
		Timeline: lifeLines(life, tasks.State(t.State), "", true),
	}
	if t.Team != "" {
		p.TeamURL = urls.Team(t.Team)
	}
	lead := []string{t.Kind, className(t.PriorityClass, "without a priority class")}
	if text := format.Amounts(t.Requests); text != "" {
		lead = append(lead, "requested "+text)
	}
	if t.SubmittedBy != "" {
		lead = append(lead, "submitted by "+t.SubmittedBy)
	}
	if p.Lead = strings.Join(lead, " · "); p.Status.Text != "" {
		p.Lead = p.Status.Text + " · " + p.Lead
	}
	if !t.DeletedAt.IsZero() {
		p.Timeline = append([]taskviews.TimelineLine{{At: format.Time(t.DeletedAt), Tone: "idle", Title: "Deleted"}}, p.Timeline...)
	}
	w := waitsOf(life, firstOf(t.FinishedAt, t.DeletedAt))
	p.Facts = []views.ValueLine{
		{Name: "Waited", Value: w.words()},
		{Name: "Ran", Value: ranFact(t.RunTime, life)},
		{Name: "Preempted", Value: orNever(t.Preemptions)},
		{Name: "Priority", Value: fmt.Sprint(t.Priority)},
		{Name: "Queue", Value: format.OrDash(t.Queue)},
		{Name: "Pool", Value: format.OrDash(strings.Join(t.Pools, ", "))},
	}
	return p
}

func firstOf(times ...time.Time) time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

func orNever(n int32) string {
	if n == 0 {
		return "never"
	}
	return format.Times(n)
}

func ranFact(ran time.Duration, life []event) string {
	runs := 0
	for _, l := range life {
		if l.Type == timeline.Admitted {
			runs++
		}
	}
	switch {
	case runs == 0 && ran == 0:
		return "never"
	case runs > 1:
		return format.Duration(ran) + " in " + format.Count(runs, "run")
	}
	return format.Duration(ran)
}

// waits counts how often and how long a task waited.
type waits struct {
	count        int
	sum, longest time.Duration
}

// waitsOf computes waits from events: from the submission, and from when its last
// part lost its quota, until admission or end.
func waitsOf(life []event, end time.Time) (w waits) {
	var since time.Time
	running := map[string]bool{}
	over := func(at time.Time) {
		if !since.IsZero() && !at.Before(since) {
			took := at.Sub(since)
			w.count, w.sum, w.longest = w.count+1, w.sum+took, max(w.longest, took)
		}
		since = time.Time{}
	}
	for _, l := range life {
		switch {
		case l.Type == timeline.Submitted:
			since = l.At
		case l.Type == timeline.Admitted:
			over(l.At)
			running[l.WorkloadUID] = true
		case l.Type.Lost():
			if delete(running, l.WorkloadUID); len(running) == 0 {
				since = l.At
			}
		case l.Type == timeline.Finished:
			over(l.At)
		}
	}
	if !end.IsZero() {
		over(end)
	}
	return w
}

func (w waits) words() string {
	switch {
	case w.count == 0:
		return "never"
	case w.count == 1:
		return format.Duration(w.sum)
	}
	return fmt.Sprintf("%s in %s; the longest was %s", format.Duration(w.sum), format.Count(w.count, "wait"), format.Duration(w.longest))
}

// recorded returns the events of a task that still exists from history.
func (h *Pages) recorded(ctx context.Context, scope access.Scope, d queries.Detail) (life []event, known bool) {
	done := h.done(ctx, d.UID)
	life = lifeOf(d.Timeline, nil, done, d.Submitted, scope, nil)
	if h.History == nil {
		return life, false
	}
	_, steps, found, err := h.History.Timeline(ctx, d.UID)
	if err != nil || !found {
		return life, false
	}
	redact, err := h.Tasks.Redactor(ctx, scope)
	if err != nil {
		return life, false
	}
	return lifeOf(d.Timeline, steps, done, d.Submitted, scope, redact), true
}
