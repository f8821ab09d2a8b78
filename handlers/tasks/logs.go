package tasks

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// registerLogs adds the routes of logs below a task's address.
func (h *Pages) registerLogs(s *web.Server) {
	if h.Logs == nil {
		return
	}
	s.Page(urls.Tasks+"/:namespace/:kind/:name/logs", h.Handler(h.logs))
	s.Events(urls.Tasks+"/:namespace/:kind/:name/logs/events", h.Handler(h.logEvents(s)))
	s.File(urls.Tasks+"/:namespace/:kind/:name/logs/download", h.Handler(h.logFile))
}

// logQuery reads the address of a log: ?pod=, ?container=, ?previous=, ?timestamps=
// and the searched text, ?q=.
func logQuery(c echo.Context) logs.Query {
	on := func(name string) bool { return c.QueryParam(name) == "true" }
	return logs.Query{
		Task: address(c, c.QueryParam("uid")), Pod: c.QueryParam("pod"), Container: c.QueryParam("container"),
		Previous: on("previous"), Timestamps: on("timestamps"), Contains: c.QueryParam("q"),
	}
}

// logsURL returns an address of a log: of its page with the path /logs, or below.
func logsURL(path string, q logs.Query) string {
	on := func(is bool) string {
		if is {
			return "true"
		}
		return ""
	}
	return urls.With(urls.TaskOf(q.Task.Namespace, q.Task.Kind, q.Task.Name)+path, nil,
		"uid", q.Task.UID, "pod", q.Pod, "container", q.Container, "previous", on(q.Previous), "timestamps", on(q.Timestamps), "q", q.Contains)
}

// logPatience is how long the page of a log waits for its lines. Its stream waits on.
const logPatience = 5 * time.Second

// logs answers GET …/logs: the last lines of the log of one container of a task's pod.
func (h *Pages) logs(c echo.Context) error {
	ctx, user, q := c.Request().Context(), console.UserOf(c), logQuery(c)
	pods, err := h.Logs.Pods(ctx, user, q.Task)
	if err != nil {
		if _, err := h.findPast(c, err); err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, below(c, "")) // the record of the deleted task
	}
	may, err := h.Logs.May(ctx, user, q.Task.Namespace)
	if err != nil {
		return err
	}
	page := taskviews.LogPage{
		Chrome: h.Chrome(c), Task: views.TaskLink{Name: q.Task.Name, URL: below(c, "")}, Action: urls.TaskOf(q.Task.Namespace, q.Task.Kind, q.Task.Name) + "/logs", UID: q.Task.UID,
		Contains: q.Contains, Previous: q.Previous, Timestamps: q.Timestamps,
	}
	page.Title, page.Active = "Logs of "+q.Task.Name, "tasks"
	if q.Pod == "" && len(pods) > 0 {
		q.Pod = pods[0].Name
	}
	choices := listing.NewFilter("pod", "Pod", "", q.Pod)
	for _, p := range pods {
		choices.Add(p.Name)
	}
	containers := listing.NewFilter("container", "Container", "", q.Container)
	if i := slices.IndexFunc(pods, func(p *index.Pod) bool { return p.Name == q.Pod }); i >= 0 {
		initial, main := pods[i].Containers()
		if !slices.Contains(slices.Concat(initial, main), q.Container) && len(main) > 0 {
			q.Container = main[0]
		}
		containers = listing.NewFilter("container", "Container", "", q.Container, main...)
		for _, name := range initial {
			containers.Add(name, name+" (init)")
		}
		page.Container = q.Container
	}
	if may && len(pods) > 0 {
		page.Filters = []views.Filter{choices.Filter, containers.Filter}
	}
	page.External = h.External(h.ExternalLogs, urls.LinkSource{Namespace: q.Task.Namespace, Kind: q.Task.Kind, Task: q.Task.Name, Pod: q.Pod, Container: q.Container})
	switch {
	case !may:
		page.Note = noLogs
	case q.Pod == "":
		page.Note = "The task has no pods now, so there is no log."
	default:
		h.readLog(ctx, c, &page, q)
	}
	return web.Render(c, http.StatusOK, taskviews.Logs(page))
}

// readLog fills in the lines of a page, and what the page does with them.
func (h *Pages) readLog(ctx context.Context, c echo.Context, page *taskviews.LogPage, q logs.Query) {
	patient, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	update, err := h.Logs.Read(patient, console.UserOf(c), q)
	page.Note = update.Note
	if err != nil {
		page.Note = logs.Sentence(err)
	}
	page.Lines = logLines(update, q)
	page.DownloadURL = logsURL("/logs/download", q)
	if !q.Previous {
		page.Stream = logsURL("/logs/events", q)
	}
}

// logEvents answers GET …/logs/events with what the container writes.
func (h *Pages) logEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		user, q := console.UserOf(c), logQuery(c)
		if _, err := h.Logs.Pods(c.Request().Context(), user, q.Task); err != nil {
			return err
		}
		return s.Stream(c, web.Part{Pieces: func(ctx context.Context) <-chan templ.Component {
			pieces := make(chan templ.Component)
			go func() {
				_ = h.Logs.Follow(ctx, user, q, func(u logs.Update) error { // its error is that ctx ended
					select {
					case pieces <- logUpdate(u, q):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}()
			return pieces
		}}, h.Frame(c))
	}
}

// logFile answers GET …/logs/download: the whole log as a file, as the container wrote
// it.
func (h *Pages) logFile(c echo.Context) error {
	q := logQuery(c)
	log, err := h.Logs.Open(c.Request().Context(), console.UserOf(c), q)
	if err != nil {
		return err
	}
	defer log.Close()
	return web.SendFile(c, q.Pod+"-"+cmp.Or(q.Container, "main")+".log", log)
}

// logUpdate converts an update of a log to what its stream sends.
func logUpdate(u logs.Update, q logs.Query) templ.Component {
	if !u.Reset && !u.Clear && len(u.Lines) == 0 {
		return taskviews.LogUpdate(nil, u.Note)
	}
	lines := logLines(u, q)
	return taskviews.LogUpdate(&lines, u.Note)
}

func logLines(u logs.Update, q logs.Query) taskviews.LogLines {
	l := taskviews.LogLines{Append: !u.Reset && !u.Clear, Skipped: u.Skipped, Empty: "No lines yet"}
	if q.Contains != "" {
		l.Empty = "No line contains this text"
	}
	for _, line := range u.Lines {
		l.Lines = append(l.Lines, taskviews.LogLine{At: line.At, Text: line.Text, Cut: line.Cut})
	}
	return l
}

// noLogs explains to a reader that they may not read logs.
const noLogs = "You cannot read these logs. You need the right to get pods/log in this namespace."

func linkSource(d queries.Detail) urls.LinkSource {
	return urls.LinkSource{Namespace: d.Namespace, Team: d.Team, Kind: d.Kind, Task: d.Name, From: d.Submitted, To: d.FinishedAt}
}

// withLogs links the pods of a task to their logs, or says why not.
func (h *Pages) withLogs(ctx context.Context, c echo.Context, p *taskviews.Pods, d queries.Detail) (*taskviews.Pods, error) {
	external := h.External(h.ExternalLogs, linkSource(d))
	if p == nil && external.URL == "" {
		return nil, nil
	}
	if p == nil {
		p = &taskviews.Pods{Note: "none now"}
	}
	p.External = external
	if h.Logs == nil || len(p.Rows) == 0 {
		return p, nil
	}
	may, err := h.Logs.May(ctx, console.UserOf(c), d.Namespace)
	if err != nil {
		return nil, err
	}
	if !may {
		p.NoLogs = noLogs
		return p, nil
	}
	for i := range p.Rows {
		p.Rows[i].LogsURL = logsURL("/logs", logs.Query{Task: address(c, c.QueryParam("uid")), Pod: p.Rows[i].Name})
	}
	return p, nil
}
