package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// explainPatience is how long a page waits for explanations that are not computed
// yet: enough for all of them in most clusters, and a part of what a page may take
// in the largest.
const explainPatience = 25 * time.Millisecond

// tasks answers GET /tasks: what runs and what waits. ?deleted=task comes after
// the deletion of one.
func (h *Handlers) tasks(c echo.Context) error {
	q := h.taskQuery(c.QueryParams())
	q.Patience = explainPatience
	if c.QueryParams().Has("cols") { // of the form, which sends all that it has
		return c.Redirect(http.StatusSeeOther, q.with(tasksURL))
	}
	ctx := c.Request().Context()
	scope, err := h.Tasks.Scope(ctx, userOf(c))
	if err != nil {
		return err
	}
	page, err := h.tasksPage(ctx, scope, q)
	if err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Tasks", "tasks", q.with(tasksURL+"/events")
	if c.QueryParam("deleted") == deletedTask {
		page.Notice = "Task deleted. It leaves this list when its job is gone from the cluster."
	}
	return web.Render(c, http.StatusOK, views.Tasks(page))
}

// tasksEvents answers GET /tasks/events: the same, as it changes.
func (h *Handlers) tasksEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := h.taskQuery(c.QueryParams())
		return s.Stream(c, web.Part{Changed: h.TaskChanges.Subscribe, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
			scope, err := h.Tasks.Scope(ctx, userOf(c))
			if governance.KindOf(err) == governance.Outside {
				return "nothing", func(context.Context) (templ.Component, error) { return views.NoTeamCard("tasks"), nil }, nil
			}
			return tasksURL + " " + q.values.Encode() + " " + scope.Key(), func(ctx context.Context) (templ.Component, error) {
				page, err := h.tasksPage(ctx, scope, q)
				return views.TasksLive(page), err
			}, err
		}}, h.frame(c))
	}
}

func (h *Handlers) tasksPage(ctx context.Context, scope access.Scope, q taskQuery) (views.TasksPage, error) {
	q.Explain = true
	list, err := h.Tasks.ListWithin(ctx, scope, q.Query, q.teams)
	if err != nil {
		return views.TasksPage{}, err
	}
	page := views.TasksPage{
		Summary: summary(list, q), Stats: taskStats(list), Tabs: q.tabs(list), Tab: q.values.Get("tab"), Text: q.Text, Filters: q.filters(list), Heads: q.heads(), Columns: q.columns(), Hidden: q.hidden, Action: tasksURL,
		Sort: q.values.Get("sort"), Order: q.values.Get("order"), Range: q.values.Get("range"), CSVURL: q.with(tasksCSVURL, "page", ""),
	}
	if page.Loops, err = h.loopNotice(ctx, scope); err != nil {
		return page, err
	}
	if h.History != nil {
		page.PastURL = pastURL
	}
	if q.Filtered() || len(q.teams) > 0 {
		page.ClearURL = q.with(tasksURL, "team", "", "class", "", "status", "", "kind", "", "pool", "", "q", "", "page", "")
	}
	if teams := q.teams; len(teams) == 1 && slices.Contains(list.Teams, teams[0]) {
		page.SubmitURL = teamURL(teams[0])
	} else if len(list.Teams) == 1 {
		page.SubmitURL = teamURL(list.Teams[0])
	}
	if classes := h.classTable(ctx, scope, list, q.teams, q.classRange); len(classes.rows) > 0 {
		page.Classes, page.ClassNote, page.ClassLeft, page.Ranges = classes.rows, classes.note, classes.left, q.ranges(h.History != nil)
	}
	for _, item := range list.Items {
		page.Tasks = append(page.Tasks, taskRow(item, h.Now()))
	}
	if list.Pages > 1 {
		first := (list.Page-1)*tasks.PageSize + 1
		page.Pager.Text = fmt.Sprintf("%s–%s of %s", thousands(int64(first)), thousands(int64(first+len(list.Items)-1)), thousands(int64(list.Total)))
		if list.Page > 1 {
			page.Pager.PreviousURL = q.with(tasksURL, "page", pageNumber(list.Page-1))
		}
		if list.Page < list.Pages {
			page.Pager.NextURL = q.with(tasksURL, "page", strconv.Itoa(list.Page+1))
		}
	}
	return page, nil
}

// pageNumber is a page as its address has it: the first has none.
func pageNumber(n int) string {
	if n <= 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// summary says what the list has, in its tab or of its filters.
func summary(list tasks.List, q taskQuery) string {
	if q.Filtered() || len(q.teams) > 0 {
		return taskCount(list.Total) + " found"
	}
	var parts []string
	for _, state := range tasks.States {
		if n := list.States[state]; n > 0 && state.Finished() == (q.Phase == tasks.Finished) {
			parts = append(parts, fmt.Sprintf("%s %s", thousands(int64(n)), strings.ToLower(string(state))))
		}
	}
	return strings.Join(parts, ", ")
}

// taskStats says at the top of the page how many tasks wait and run, of all that
// the reader sees.
func taskStats(list tasks.List) []views.Stat {
	waiting, running := list.States[tasks.Pending]+list.States[tasks.Preempted], 0
	for state, n := range list.States {
		if state.UsesQuota() {
			running += n
		}
	}
	stats := []views.Stat{
		{ID: "stat-waiting", Label: "Waiting tasks", Value: thousands(int64(waiting))},
		{ID: "stat-running", Label: "Running tasks", Value: thousands(int64(running))},
		{ID: "stat-stopped", Label: "Stopped tasks", Value: thousands(int64(list.States[tasks.Stopped]))},
	}
	if n := list.States[tasks.Preempted]; n > 0 {
		stats[0].Note = thousands(int64(n)) + " preempted"
	}
	if n := list.States[tasks.Starting]; n > 0 {
		stats[1].Note = thousands(int64(n)) + " starting"
	}
	return stats
}

// tones says how each state looks.
var tones = map[tasks.State]string{
	tasks.Running: "ok", tasks.Starting: "ok", tasks.Succeeded: "idle",
	tasks.Pending: "wait", tasks.Preempted: "pre", tasks.Stopping: "pre",
	tasks.Stopped: "idle", tasks.Failed: "bad",
}

func taskRow(item tasks.Item, now time.Time) views.TaskRow {
	resources := item.Resources()
	row := views.TaskRow{
		ID: "task-" + item.UID, Name: item.Name, Kind: item.Kind, URL: taskURL(item.Task),
		Status:    views.Status{Tone: tones[item.State], Label: stateLabel(item.Task)},
		Reason:    listReason(item),
		Size:      joined(sizeWords(item.Task), withoutNode(item.UnscheduledPods)),
		Team:      orDash(item.Team),
		Namespace: item.Namespace,
		Class:     orDash(className(item.PriorityClass)),
		Place:     "–",
		VCPU:      orDash(number(resources, catalog.CPU)),
		Memory:    orDash(number(resources, catalog.Memory)),
		Pool:      orDash(strings.Join(item.Pools, ", ")),
		Submitted: item.Submitted.UTC().Format(time.RFC3339),
		// Not to the second: a row that only grew older is not sent again.
		SubmittedAgo: age(now.Sub(item.Submitted)),
		Waited:       "–", Ran: "–", Preemptions: "0",
	}
	if item.Position > 0 {
		row.Place = ordinal(item.Position)
	}
	if d := item.Waited(now); d > 0 || !item.WaitingSince.IsZero() {
		row.Waited = elapsed(d, !item.WaitingSince.IsZero())
	}
	if d := item.Ran(now); d > 0 || !item.AdmittedAt.IsZero() {
		row.Ran = elapsed(d, item.State.UsesQuota())
	}
	if item.Preemptions > 0 {
		row.Preemptions = thousands(int64(item.Preemptions))
	}
	var accelerators []string
	for _, name := range resources.Names() {
		if name != catalog.CPU && name != catalog.Memory && name != catalog.Network && resources[name] > 0 {
			accelerators = append(accelerators, quota.Amount(name, resources[name]))
		}
	}
	row.Accelerators = orDash(strings.Join(accelerators, ", "))
	return row
}

// listReason says in one sentence why a task does not run, or not with all its
// pods: the headline of its page. Kueue's words are on that page.
func listReason(item tasks.Item) string {
	switch {
	case item.State == tasks.Stopped: // the status says it
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

// taskURL is the page of a task: its owner's kind and name, so that it lasts over
// requeues and slices.
func taskURL(t *tasks.Task) string {
	return tasksURL + "/" + url.PathEscape(t.Namespace) + "/" + url.PathEscape(strings.ToLower(t.Kind)) + "/" + url.PathEscape(t.Name)
}

// sizeWords tells what a task has of what it wants, where that is not all.
func sizeWords(t *tasks.Task) string {
	switch {
	case t.Growing() && t.PendingMessage != "":
		return fmt.Sprintf("%d of %d pods; wants more", t.Size.Admitted, t.Size.Wanted)
	case t.Growing():
		return fmt.Sprintf("%d of %d pods", t.Size.Admitted, t.Size.Wanted)
	}
	return ""
}

// withoutNode tells of pods that the scheduler has not placed; empty for none.
func withoutNode(n int) string {
	if n == 0 {
		return ""
	}
	return countOf(n, "pod") + " without a node"
}

// joined are the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// elapsed is a time that passed: in whole minutes while it goes on, so that a
// row that only grew older is not sent again each second.
func elapsed(d time.Duration, goesOn bool) string {
	if goesOn {
		return age(d)
	}
	return duration(d)
}

func ordinal(n int) string {
	ending := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return thousands(int64(n)) + ending
}

// age is a duration in whole minutes.
func age(d time.Duration) string {
	if d < time.Minute {
		return "under 1 m"
	}
	if d < time.Hour {
		return fmt.Sprintf("%d m", int(d.Minutes()))
	}
	return duration(d)
}

func number(resources quota.Resources, name string) string {
	if resources[name] == 0 {
		return ""
	}
	return quota.Short(name, resources[name])
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(int64(n)) + " " + noun + "s"
}
