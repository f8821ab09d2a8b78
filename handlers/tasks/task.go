package tasks

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// task answers GET /tasks/{namespace}/{kind}/{name}: the page of one task. ?uid=
// selects one of several tasks that had the name.
func (h *Pages) task(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := h.taskPage(ctx, c)
	if err != nil {
		return h.pastTask(c, err)
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream, page.Charts = page.Name, "tasks", below(c, "/events"), page.Elastic != nil
	if page.Notice != "" {
		page.Stream = withDone(page.Stream, actions.Action(c.QueryParam("done")))
	}
	page.Events = h.notices(c)(ctx)
	if h.History != nil {
		if named, err := h.sameName(ctx, c); err == nil { // without history the page omits them
			page.Others = sameNameLinks(named, page.UID)
		}
	}
	return web.Render(c, http.StatusOK, taskviews.Task(page))
}

// taskMinGap is the least time between two updates of a task's page, but for advice:
// unlike a list, the page is rendered for each reader.
const taskMinGap = 500 * time.Millisecond

// taskEvents answers GET …/events with the live part of the same page.
func (h *Pages) taskEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		if _, err := h.taskPage(c.Request().Context(), c); err != nil {
			if _, err = h.findPast(c, err); err != nil { // otherwise a page connects again after its task was deleted
				return err
			}
		}
		notices := h.cachedNotices(c)
		return s.Stream(c, web.Part{Changed: h.Changes.Subscribe, Awaited: h.Advice.Subscribe, MinGap: taskMinGap, Render: func(ctx context.Context) (templ.Component, error) {
			page, err := h.taskPage(ctx, c)
			if governance.KindOf(err) == governance.NotFound {
				return taskviews.TaskDeletedBody(h.deletedURL(c)), nil
			}
			page.Events = notices(ctx)
			return console.Live("task", taskviews.TaskLive(page), err)
		}}, h.Frame(c))
	}
}

// deletedURL returns the address of the record of a deleted task; "" without
// history.
func (h *Pages) deletedURL(c echo.Context) string {
	if h.History == nil {
		return ""
	}
	return below(c, "")
}

func isElasticJob(kind string) bool { return strings.EqualFold(kind, v1alpha1.ElasticJobKind) }

// taskYAML answers GET …/yaml: the Workloads of a task as a file, or its ElasticJob.
func (h *Pages) taskYAML(c echo.Context) error {
	text, err := h.Tasks.YAML(c.Request().Context(), console.UserOf(c), c.Param("namespace"), c.Param("kind"), c.Param("name"), c.QueryParam("uid"))
	if err != nil {
		return err
	}
	name := "workload"
	if isElasticJob(c.Param("kind")) {
		name = c.Param("name")
	}
	return console.YAMLFile(c, name, text)
}

// below returns an address below the page of the requested task.
func below(c echo.Context, path string) string {
	return urls.With(urls.TaskOf(c.Param("namespace"), c.Param("kind"), c.Param("name"))+path, nil, "uid", c.QueryParam("uid"))
}

func (h *Pages) taskPage(ctx context.Context, c echo.Context) (taskviews.TaskPage, error) {
	d, err := h.Tasks.Detail(ctx, console.UserOf(c), c.Param("namespace"), c.Param("kind"), c.Param("name"), c.QueryParam("uid"))
	if err != nil {
		return taskviews.TaskPage{}, err
	}
	offered, err := h.taskActions(ctx, c, d)
	if err != nil {
		return taskviews.TaskPage{}, err
	}
	scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
	if err != nil {
		return taskviews.TaskPage{}, err
	}
	activity := ""
	if h.History != nil {
		activity = urls.ActivityOf(d.UID)
	}
	now := h.Now()
	life, recorded := h.recorded(ctx, scope, d)
	lines := h.progressOf(ctx, console.UserOf(c), d.Task)
	var lost map[int64]string // words by second
	page := taskviews.TaskPage{
		Actions: offered, UID: d.UID, Notice: doneNotice(actions.Action(c.QueryParam("done")), d),
		Name: d.Name, Team: format.OrDash(d.Team), Namespace: d.Namespace, Dashboard: h.External(h.Dashboard, linkSource(d)),
		Status: views.Status{Tone: tones[d.State], Label: stateWords(d, now)},
		Lead:   strings.Join(facts(d), " · "), YAMLURL: below(c, "/yaml"), YAMLTitle: "Workload as YAML", ActivityURL: activity,
		Why: WhyOf(d), Progress: progressCard(lines), TimelineGap: incompleteNote(d, life), TimelineNote: "since this console started", Pods: pods(d, againOf(offered)),
	}
	if page.Pods, err = h.withLogs(ctx, c, page.Pods, d); err != nil {
		return taskviews.TaskPage{}, err
	}
	may, err := h.May(ctx, console.UserOf(c))
	if err != nil {
		return taskviews.TaskPage{}, err
	}
	withActions(page.Why, d, offered, may.Update)
	page.Estimate = EstimateOf(d, h.Starts, now)
	page.Loops = loopLines(d.Loops)
	if idle, is := h.Hardware.IdleTasks(ctx)[d.UID]; is {
		page.Idle = fmt.Sprintf("Its accelerators have been %s: none was busier than %.1f %%. Stopping it frees its quota.", idle.Words(now), idle.Peak*100)
	}
	if recorded && page.TimelineGap == "" {
		page.TimelineNote = ""
	}
	switch {
	case isElasticJob(d.Kind):
		page.YAMLTitle = "ElasticJob as YAML"
	case len(d.Parts) == 0:
		page.YAMLURL = ""
	}
	if d.Team != "" {
		page.TeamURL = urls.Team(d.Team)
	}
	page.Position, page.QuotaSource, page.LastPreemption, page.Sizes = positionOf(d, now), backingOf(d), lastPreemption(d), sizesOf(d)
	if d.Kind == v1alpha1.ElasticJobKind {
		page.Sizes = nil // its changes are listed with their causes
		page.Elastic, lost = h.elasticOf(ctx, c, scope, d.UID, d.Scaling, sizeUntil(d.Scaling, now), lines)
	} else if len(d.Sizes) == 0 {
		lost = lostByPreemption(life, d.Resources(), h.starts(ctx, d.UID, lines))
	}
	page.Timeline = lifeLines(withLost(life, lost), d.State, strings.Join(d.Pools, ", "), false)
	figures := func(name string, r quota.Resources) {
		if text := format.Amounts(r); text != "" {
			page.Resources = append(page.Resources, views.ValueLine{Name: name, Value: text})
		}
	}
	if d.State.UsesQuota() {
		figures("Uses", d.Usage)
		page.Resources = append(page.Resources, views.ValueLine{Name: "Pool", Value: format.OrDash(strings.Join(d.Pools, ", "))})
	}
	if !d.State.UsesQuota() || d.Growing() || len(d.Usage) == 0 {
		figures("Requests", d.Requests)
	}
	page.Resources = append(page.Resources, views.ValueLine{Name: "Pods", Value: podWords(d)}, views.ValueLine{Name: "Queue", Value: format.OrDash(d.Queue)})
	if words := timeLimitWords(d); words != "" {
		page.Resources = append(page.Resources, views.ValueLine{Name: "Time limit", Value: words})
	}
	for _, s := range d.Conditions {
		page.KueueMessages = append(page.KueueMessages, taskviews.KueueMessage{Token: fmt.Sprintf("%s=%s %s", s.Type, s.Status, s.Reason), Text: s.Message, At: s.LastTransitionTime.UTC().Format(time.RFC3339)})
	}
	return page, nil
}

func stateWords(d queries.Detail, now time.Time) string {
	switch {
	case d.State.Waiting():
		return fmt.Sprintf("%s · %s", stateLabel(d.Task), format.Elapsed(d.Waited(now), true))
	case d.State == tasks.Running:
		return fmt.Sprintf("%s · %s", d.State, format.Elapsed(d.Ran(now), true))
	}
	return string(d.State)
}

// stateLabel returns the state of a task for pages.
func stateLabel(t *tasks.Task) string {
	if _, held := t.Hold(); held {
		return string(timeline.Held)
	}
	return string(t.State)
}

// className returns the name of a priority class among other facts; without for none.
func className(class, without string) string {
	if desired.IsNumber(class) {
		return format.ClassWords(class)
	}
	return cmp.Or(format.ClassName(class), without)
}

// facts describes a task in a few words.
func facts(d queries.Detail) []string {
	list := []string{d.Kind, className(d.PriorityClass, "no priority class")}
	verb := "requests "
	switch {
	case d.State.UsesQuota():
		verb = "uses "
	case d.State.Finished():
		verb = "requested "
	}
	if text := format.Amounts(d.Resources()); text != "" {
		list = append(list, verb+text)
	}
	if text := replicaWords(d.Task); text != "" {
		list = append(list, text)
	}
	if text := completedWords(d.Task); text != "" {
		list = append(list, text)
	}
	if d.State.Finished() {
		list = append(list, "waited "+format.Elapsed(d.LastWait, false), "ran "+format.Elapsed(d.Ran(d.FinishedAt), false))
	}
	if d.SubmittedBy != "" {
		list = append(list, "submitted by "+d.SubmittedBy)
	}
	return list
}

// completedWords says how many completions of a task succeeded; empty for a task of one.
func completedWords(t *tasks.Task) string {
	if t.Completed.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s completed", format.Thousands(int64(t.Completed.Done)), format.Thousands(int64(t.Completed.Of)))
}

func podWords(d queries.Detail) string {
	s := d.Size
	switch {
	case d.Scaling != nil:
		return sizeText(d.Scaling.Job)
	case !d.State.UsesQuota(), s.Admitted == 0: // deactivated, and its pods are ending
		if s.Min < s.Wanted && !d.State.UsesQuota() {
			return fmt.Sprintf("%d wanted; starts with %d", s.Wanted, s.Min)
		}
		return fmt.Sprint(s.Wanted)
	}
	text := fmt.Sprint(s.Admitted)
	if s.Wanted != s.Admitted {
		text = fmt.Sprintf("%d of %d", s.Admitted, s.Wanted)
	}
	if s.Guaranteed < s.Admitted {
		text += fmt.Sprintf("; %d guaranteed, %d opportunistic", s.Guaranteed, s.Admitted-s.Guaranteed)
	}
	return text
}

func named(list []*tasks.Task) (links []views.TaskLink) {
	for _, t := range list {
		links = append(links, views.TaskLink{Name: t.Name, URL: urls.Task(t)})
	}
	return links
}
