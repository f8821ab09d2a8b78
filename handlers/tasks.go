package handlers

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// maxTasks is how many tasks the page shows, until it has pages.
const maxTasks = 200

// tasks answers GET /tasks: what runs and what waits.
func (h *Handlers) tasks(c echo.Context) error {
	page, err := h.tasksPage(c.Request().Context(), userOf(c))
	if err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Tasks", "tasks", "/tasks/events"
	return web.Render(c, http.StatusOK, views.Tasks(page))
}

// tasksEvents answers GET /tasks/events: the same, as it changes.
func (h *Handlers) tasksEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		return s.Stream(c, h.TaskChanges.Listen(c.Request().Context()), func(ctx context.Context) (templ.Component, error) {
			page, err := h.tasksPage(ctx, userOf(c))
			return live("tasks", views.TasksTable(page), err)
		}, h.frame(c))
	}
}

func (h *Handlers) tasksPage(ctx context.Context, user governance.User) (views.TasksPage, error) {
	items, err := h.Tasks.List(ctx, user)
	if err != nil {
		return views.TasksPage{}, err
	}
	page := views.TasksPage{Summary: summary(items)}
	for _, item := range items[:min(maxTasks, len(items))] {
		page.Tasks = append(page.Tasks, taskRow(item, h.Now()))
	}
	return page, nil
}

func summary(items []tasks.Item) string {
	if len(items) == 0 {
		return ""
	}
	counts := map[tasks.State]int{}
	for _, item := range items {
		counts[item.State]++
	}
	var parts []string
	for _, state := range []tasks.State{tasks.Running, tasks.Starting, tasks.Stopping, tasks.Pending, tasks.Preempted, tasks.Paused, tasks.Succeeded, tasks.Failed} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(string(state))))
		}
	}
	text := fmt.Sprintf("%s: %s", countOf(len(items), "task"), strings.Join(parts, ", "))
	if len(items) > maxTasks {
		text += fmt.Sprintf("; the first %d are shown", maxTasks)
	}
	return text
}

// tones says how each state looks.
var tones = map[tasks.State]string{
	tasks.Running: "ok", tasks.Starting: "ok", tasks.Succeeded: "idle",
	tasks.Pending: "wait", tasks.Preempted: "pre", tasks.Stopping: "pre",
	tasks.Paused: "idle", tasks.Failed: "bad",
}

func taskRow(item tasks.Item, now time.Time) views.TaskRow {
	row := views.TaskRow{
		ID: "task-" + item.UID, Name: item.Name, Kind: item.Kind,
		Status: views.Status{Tone: tones[item.State], Label: string(item.State)},
		Reason: item.Reason, ReasonStart: start(item.Reason),
		Team:      orDash(item.Team),
		Namespace: item.Namespace,
		Class:     orDash(strings.TrimSuffix(item.Class, "-priority")),
		VCPU:      orDash(number(item.Resources, catalog.CPU)),
		Memory:    orDash(number(item.Resources, catalog.Memory)),
		Pool:      orDash(strings.Join(item.Pools, ", ")),
		Submitted: item.Submitted.UTC().Format(time.RFC3339),
		// Not to the second: a row that only grew older is not sent again.
		SubmittedAgo: age(now.Sub(item.Submitted)),
	}
	var accelerators []string
	for _, name := range item.Resources.Names() {
		if name != catalog.CPU && name != catalog.Memory && name != catalog.Network && item.Resources[name] > 0 {
			accelerators = append(accelerators, quota.Amount(name, item.Resources[name]))
		}
	}
	row.Accelerators = orDash(strings.Join(accelerators, ", "))
	return row
}

// longReason is how many bytes of a reason stand in the table unfolded.
const longReason = 140

// lacking is the part of Kueue's reason (0.19) that says how much is missing,
// or by how much the task is too large ever to run.
var lacking = regexp.MustCompile(`insufficient unused quota for [^,]+, \S+ more needed|` +
	`insufficient quota for [^,]+, previously considered podsets requests \([^)]*\) \+ current podset request \([^)]*\) > maximum capacity \([^)]*\)`)

// start stands for a long reason: what is missing, where it says so, or how it
// begins, up to its last comma there. It is empty for a short one.
func start(text string) string {
	if len(text) <= longReason {
		return ""
	}
	if missing := lacking.FindString(text); missing != "" {
		return missing + " …"
	}
	begin := text[:longReason]
	if i := strings.LastIndex(begin, ", "); i > 0 {
		begin = begin[:i]
	}
	return strings.ToValidUTF8(begin, "") + " …"
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
	return quota.Number(name, resources[name])
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
	return fmt.Sprintf("%d %ss", n, noun)
}
