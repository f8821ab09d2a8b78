package tasks

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

const apiTask = "/tasks/:namespace/:kind/:name"

// registerAPI adds the endpoints of tasks.
func (h *Pages) registerAPI(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/tasks", Summary: "List tasks", Query: taskParameters, Answer: tasksAnswer{}, Handler: h.Within(known(h.tasksJSON))})
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/queue", Summary: "List the waiting tasks that are next to start", Query: upcomingParameters, Answer: upcomingAnswer{}, Handler: h.Within(h.upcomingJSON)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/past-tasks", Summary: "List tasks that ended, also deleted ones", Query: []web.Parameter{
		{Name: "team", About: "of this team"}, {Name: "department", About: "of the teams in this department and below it"}, {Name: "class", About: "of this priority class"}, {Name: "kind", About: "of this kind"}, {Name: "q", About: "whose name contains this"}, {Name: "from", About: "first day"}, {Name: "to", About: "last day"}, {Name: "page", About: "page of the list"},
	}, Answer: pastAnswer{}, Handler: h.Within(h.pastJSON)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiTask, Summary: "Return a task as the list has it", Query: uidParameter, Answer: taskJSON{}, Handler: h.Handler(h.getTask)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiTask + "/why", Summary: "Explain why a task waits, what would start it, and when it probably starts", Query: uidParameter, Answer: whyAnswer{}, Handler: h.Handler(h.whyJSON)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiTask + "/manifest", Summary: "Return the YAML of a task", Query: uidParameter, Handler: h.Handler(h.taskYAML)})
	if h.Logs != nil {
		s.API(web.Endpoint{Method: http.MethodGet, Path: apiTask + "/pods", Summary: "List the pods of a task", Query: uidParameter, Answer: podsAnswer{}, Handler: h.Handler(h.podsJSON)})
		s.APIFile(web.Endpoint{Method: http.MethodGet, Path: apiTask + "/logs", Summary: "Read the log of a container", Query: logParameters, Handler: h.Handler(h.logText)})
	}
	if h.Actions == nil {
		return
	}
	for _, action := range []actions.Action{actions.Stop, actions.Resume, actions.Front, actions.Class, actions.Scale, actions.Resize, actions.Delete, actions.Again} {
		e := web.Endpoint{
			Method: http.MethodPost, Path: apiTask + "/" + string(action), Summary: actionNames[action], Query: dryRunParameter,
			Body: ActionRequest{}, Answer: ActionAnswer{}, Handler: h.Handler(h.Writing(h.act(action))),
		}
		if action == actions.Delete {
			e.Method, e.Path, e.Body, e.Query = http.MethodDelete, apiTask, nil, slices.Concat(uidParameter, dryRunParameter)
		}
		s.API(e)
	}
	s.API(web.Endpoint{Method: http.MethodPost, Path: "/tasks/many", Summary: "Run an action on many tasks, or only list which", Query: dryRunParameter, Body: ManyRequest{}, Answer: ManyAnswer{}, Status: http.StatusAccepted, Handler: h.Within(func(c echo.Context, scope access.Scope) error {
		return h.Writing(func(c echo.Context) error { return h.actMany(c, scope) })(c)
	})})
}

// Parameters of queries.
var (
	uidParameter    = []web.Parameter{{Name: "uid", About: "UID of the task, if another one had its name"}}
	dryRunParameter = []web.Parameter{{Name: "dryRun", About: "true changes nothing and answers what would happen"}}
	taskParameters  = []web.Parameter{
		{Name: "team", About: "of this team; several times for several"}, {Name: "department", About: "of the teams in this department and below it"}, {Name: "status", About: "in this status, such as Pending or Running"}, {Name: "class", About: "of this priority class"},
		{Name: "kind", About: "of this kind, such as Job"}, {Name: "pool", About: "in this pool"}, {Name: "by", About: "submitted by this user"}, {Name: "mine", About: "true for those of the person of the token"}, {Name: "q", About: "whose name, person or label contains this"},
		{Name: "tab", About: "active, the default, or finished"}, {Name: "sort", About: "column, such as name"}, {Name: "order", About: "asc or desc"}, {Name: "page", About: "page of the list"},
	}
	upcomingParameters = []web.Parameter{{Name: "team", About: "of this team; several times for several"}, {Name: "department", About: "of the teams in this department and below it"}, {Name: "class", About: "of this priority class"}, {Name: "page", About: "page of the list"}}
	logParameters      = append(slices.Clone(uidParameter),
		web.Parameter{Name: "pod", About: "name of the pod; default the first"}, web.Parameter{Name: "container", About: "name of the container; default the first that is no init container"},
		web.Parameter{Name: "previous", About: "true reads the run before the last restart"}, web.Parameter{Name: "timestamps", About: "true writes the time before each line"}, web.Parameter{Name: "follow", About: "true waits for more lines until the container ends"})
)

// ActionRequest is the body of an action on a task.
type ActionRequest struct {
	UID        string `json:"uid,omitempty"`        // of the task, so that no other one of its name is changed
	Class      string `json:"class,omitempty"`      // name of the WorkloadPriorityClass, for class and front; for class also a number from 0 to 99
	Replicas   *int32 `json:"replicas,omitempty"`   // for scale
	Sizes      *Sizes `json:"sizes,omitempty"`      // for resize
	Generation int64  `json:"generation,omitempty"` // for resize: of the ElasticJob that was read; 0 for the one now
	Name       string `json:"name,omitempty"`       // for again: of the new task; default the next number of its series
	Index      *int32 `json:"index,omitempty"`      // for again: of an array, only this index
}

// Sizes are the allowed sizes of an elastic task, in pods, and its times.
type Sizes struct {
	Min    int32         `json:"min"` // without min, max, step and values the sizes stay
	Max    int32         `json:"max"`
	Step   int32         `json:"step,omitempty"`   // from min to max; without values
	Values []int32       `json:"values,omitempty"` // in place of min, max and step
	Times  actions.Times `json:"times,omitempty"`  // seconds by the name of the field of elasticPolicy, such as gracefulShutdownTimeoutInSeconds; those that are missing stay

	Growth         v1alpha1.Growth `json:"growth,omitempty"`         // Provision asks for nodes; without it, it stays
	MaxUnscheduled *int32          `json:"maxUnscheduled,omitempty"` // pods that wait for nodes at once; 0 for those of one step; without it, it stays

	ScaleConfig map[string]map[string]string `json:"scaleConfig,omitempty"` // variables by size, such as {"8": {"BATCH_SIZE": "32"}}, in place of those it has; {} for none; without it, they stay
}

// sizes returns the sizes of a request, and what is wrong with its variables.
func (z *Sizes) sizes() (sizes actions.Sizes, wrong []string) {
	sizes = actions.Sizes{Min: z.Min, Max: z.Max, Step: z.Step, Values: z.Values, Times: z.Times, Growth: z.Growth, MaxUnscheduled: z.MaxUnscheduled}
	if z.ScaleConfig == nil {
		return sizes, nil
	}
	lines, several := forms.ScaleLines(z.ScaleConfig)
	for _, name := range several {
		wrong = append(wrong, "has a value of several lines: "+name)
	}
	config, more := forms.ScaleConfig(lines)
	sizes.Scale = append([]v1alpha1.ScaleConfig{}, config...) // not nil
	return sizes, append(wrong, more...)
}

// ActionAnswer is what an action did or, as a dry run, would meet.
type ActionAnswer struct {
	Task     TaskAddress `json:"task"`
	Status   string      `json:"status"`             // before
	Done     bool        `json:"done"`               // whether it was run
	Obstacle string      `json:"obstacle,omitempty"` // why it cannot be run
	Position int         `json:"position,omitempty"` // in its queue, before
	Choices  []string    `json:"choices,omitempty"`  // priority classes that class and front take, without the numbers
}

// TaskAddress names a task.
type TaskAddress struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Path      string `json:"path,omitempty"` // of its page
}

// addressOf names a task.
func addressOf(t *tasks.Task) TaskAddress {
	return TaskAddress{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Path: urls.Task(t)}
}

// isDryRun reports whether a request of the API changes nothing.
func isDryRun(c echo.Context) bool { return c.QueryParam("dryRun") == "true" }

// act answers an action on one task.
func (h *Pages) act(action actions.Action) func(echo.Context) error {
	return func(c echo.Context) error {
		var request ActionRequest
		if action != actions.Delete {
			if err := web.ReadJSON(c, &request); err != nil {
				return err
			}
		} else {
			request.UID = c.QueryParam("uid")
		}
		ctx, user, at := c.Request().Context(), console.UserOf(c), address(c, request.UID)
		if action == actions.Again {
			return h.actAgain(c, at, request)
		}
		review, err := h.Actions.Review(ctx, user, at, action)
		if err != nil {
			return err
		}
		at.UID = review.UID
		answer := ActionAnswer{Task: addressOf(review.Task), Status: stateLabel(review.Task), Obstacle: review.Obstacle, Position: review.Position}
		for _, choice := range review.Choices {
			answer.Choices = append(answer.Choices, choice.Name)
		}
		if isDryRun(c) {
			return c.JSON(http.StatusOK, answer)
		}
		if review.Obstacle != "" {
			return &governance.Error{Kind: governance.Conflict, Op: "act on task", Message: review.Obstacle}
		}
		if err := h.run(ctx, user, at, action, review, request); err != nil {
			return err
		}
		answer.Done = true
		return c.JSON(http.StatusOK, answer)
	}
}

// run runs an action that a review found possible.
func (h *Pages) run(ctx context.Context, user governance.User, at tasks.Address, action actions.Action, review actions.Review, request ActionRequest) error {
	wrong := func(field, message string) error {
		return &governance.Error{Kind: governance.Invalid, Op: "act on task", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: field, Message: message}}}
	}
	switch action {
	case actions.Front:
		if request.Class == "" && len(review.Choices) > 0 {
			request.Class = review.Choices[0].Name
		}
		return h.Actions.MoveToFront(ctx, user, at, request.Class)
	case actions.Class:
		names := make([]string, len(review.Choices))
		for i, choice := range review.Choices {
			names[i] = choice.Name
		}
		written := request.Class
		if request.Class = classNamed(written, names, review.Numbers); request.Class == "" {
			return wrong("class", "is "+strconv.Quote(written)+": "+noSuchClass(names, review.Numbers))
		}
	case actions.Scale:
		if request.Replicas == nil {
			return wrong("replicas", "is missing")
		}
		return h.Actions.Scale(ctx, user, at, *request.Replicas, review.Replicas)
	case actions.Resize:
		if request.Sizes == nil {
			return wrong("sizes", "is missing")
		}
		if request.Generation == 0 {
			request.Generation = review.Resizing.Generation
		}
		fields, _ := actions.TimeFields()
		for field := range request.Sizes.Times {
			if !slices.Contains(fields, field) {
				return wrong("sizes.times", fmt.Sprintf("has %q, which is none of %v", field, fields))
			}
		}
		sizes, problems := request.Sizes.sizes()
		if len(problems) > 0 {
			return wrong("sizes.scaleConfig", problems[0])
		}
		return h.Actions.Resize(ctx, user, at, sizes, request.Generation)
	}
	return h.Actions.Run(ctx, user, at, action, request.Class)
}

// actAgain submits a task again.
func (h *Pages) actAgain(c echo.Context, at tasks.Address, request ActionRequest) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	d, err := h.Tasks.Detail(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	if err != nil {
		return err
	}
	at = tasks.Address{Namespace: d.Namespace, Kind: d.Kind, Name: d.Name, UID: d.UID}
	why, err := h.obstacles(ctx, user, actions.Again, []queries.Item{d.Item})
	if err != nil {
		return err
	}
	series := at
	if request.Name == "" && request.Index != nil {
		series.Name = fmt.Sprintf("%s-i%d", at.Name, *request.Index)
		if _, err := h.Tasks.Detail(ctx, user, at.Namespace, at.Kind, series.Name, ""); governance.KindOf(err) == governance.NotFound {
			request.Name = series.Name
		}
	}
	if request.Name == "" {
		names, err := h.Again.NamesAgain(ctx, user, []tasks.Address{series})
		if err != nil {
			return err
		}
		request.Name = names[0]
	}
	answer := ActionAnswer{Task: TaskAddress{Namespace: d.Namespace, Kind: d.Kind, Name: request.Name, Path: urls.TaskOf(d.Namespace, d.Kind, request.Name)}, Obstacle: why[0]}
	switch {
	case isDryRun(c):
		return c.JSON(http.StatusOK, answer)
	case why[0] != "":
		return &governance.Error{Kind: governance.Conflict, Op: "submit task", Message: why[0]}
	}
	if err := h.Again.Repeat(ctx, user, d.Team, at, request.Name, request.Index); err != nil {
		return err
	}
	answer.Done = true
	return c.JSON(http.StatusOK, answer)
}

// ManyRequest is an action on the tasks with these UIDs, or on all that a selector matches.
type ManyRequest struct {
	Action   string    `json:"action"` // stop, resume, class, again or delete
	Class    string    `json:"class,omitempty"`
	UIDs     []string  `json:"uids,omitempty"`
	Selector *Selector `json:"selector,omitempty"`
}

// Selector matches tasks as the filters of their list do.
type Selector struct {
	Teams    []string `json:"teams,omitempty"`
	Statuses []string `json:"statuses,omitempty"` // default all that are not finished
	Classes  []string `json:"classes,omitempty"`
	Kinds    []string `json:"kinds,omitempty"`
	Pools    []string `json:"pools,omitempty"`
	By       string   `json:"by,omitempty"`
	Mine     bool     `json:"mine,omitempty"` // submitted by the person of the token
	Text     string   `json:"text,omitempty"`
	Names    []string `json:"names,omitempty"` // patterns such as lr-*; default all
	Finished bool     `json:"finished,omitempty"`
}

// ManyAnswer lists the tasks of an action. Its progress is at /bulk/{id}.
type ManyAnswer struct {
	ID    string     `json:"id,omitempty"` // absent for a dry run
	Tasks []ManyTask `json:"tasks"`
	More  int        `json:"more,omitempty"` // that match and are too many for one action
}

// ManyTask is one task of an action.
type ManyTask struct {
	TaskAddress
	Status   string `json:"status"`
	Obstacle string `json:"obstacle,omitempty"` // why the action cannot be run on it
}

// actMany answers an action on many tasks.
func (h *Pages) actMany(c echo.Context, scope access.Scope) error {
	var request ManyRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	ctx, user, action := c.Request().Context(), console.UserOf(c), actions.Action(request.Action)
	var wrong governance.FieldErrors
	if !slices.Contains(manyActions, action) {
		wrong.Add("action", "is "+strconv.Quote(request.Action)+", want stop, resume, class, again or delete")
	}
	if action == actions.Class && request.Class == "" {
		wrong.Add("class", "is missing")
	}
	if (request.Selector == nil) == (len(request.UIDs) == 0) {
		wrong.Add("selector", "set it, or uids")
	}
	if request.tooLong() {
		wrong.Addf("selector", "has more than %d values in a list, or one of more than %d bytes", maxSelected, maxValue)
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "act on tasks", Message: "Some values are not valid.", Fields: wrong}
	}
	if action == actions.Class {
		classes, err := h.Actions.PriorityClasses(ctx)
		if err != nil {
			return err
		}
		classes, numbers := queries.WithoutNumbers(classes)
		names := make([]string, len(classes))
		for i, class := range classes {
			names[i] = class.Name
		}
		if request.Class = classNamed(request.Class, names, len(numbers) > 0); request.Class == "" {
			return &governance.Error{Kind: governance.Invalid, Op: "act on tasks", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "class", Message: noSuchClass(names, len(numbers) > 0)}}}
		}
	}
	if request.Selector != nil && request.Selector.Mine {
		request.Selector.By = user.Name
	}
	s, err := h.selectedBy(ctx, user, scope, selection{action: action, class: request.Class}, request.query(), request.matches)
	if err != nil {
		return err
	}
	answer := ManyAnswer{Tasks: []ManyTask{}, More: s.more}
	for _, t := range s.items {
		answer.Tasks = append(answer.Tasks, ManyTask{TaskAddress: addressOf(t.Task), Status: stateLabel(t.Task)})
	}
	if room := max(0, bulk.MaxItems-len(s.items)); len(s.excluded) > room { // the record of a run has that many
		answer.More += len(s.excluded) - room
		s.excluded, s.why = s.excluded[:room], s.why[:room]
	}
	for i, t := range s.excluded {
		answer.Tasks = append(answer.Tasks, ManyTask{TaskAddress: addressOf(t.Task), Status: stateLabel(t.Task), Obstacle: s.why[i]})
	}
	if isDryRun(c) || len(s.items) == 0 {
		return c.JSON(http.StatusOK, answer)
	}
	run, at := s.run(heading(action, format.Tasks(len(s.items))), urls.Tasks)
	do, err := h.doMany(ctx, user, s, &run, at)
	if err != nil {
		return err
	}
	if answer.ID, err = h.Bulk.Begin(c, run, do); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, answer)
}

// noSuchClass says which priority classes there are.
func noSuchClass(names []string, numbers bool) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = format.ClassName(name)
	}
	if numbers {
		shown = append(shown, fmt.Sprintf("the numbers 0 to %d", desired.MaxNumber))
	}
	return "there is no such priority class; there are " + strings.Join(shown, ", ")
}

// Bounds of a selector: of a list, and of the bytes of a value.
const (
	maxSelected = bulk.MaxItems
	maxValue    = 253
)

// tooLong reports whether a request exceeds the bounds of a selector.
func (r ManyRequest) tooLong() bool {
	of := Selector{}
	if r.Selector != nil {
		of = *r.Selector
	}
	for _, list := range [][]string{r.UIDs, of.Teams, of.Statuses, of.Classes, of.Kinds, of.Pools, of.Names, {of.By, of.Text, r.Class}} {
		if len(list) > maxSelected || slices.ContainsFunc(list, func(value string) bool { return len(value) > maxValue }) {
			return true
		}
	}
	return false
}

// classNamed returns the name of a priority class as it is written or without its suffix, or of a
// number; empty for none.
func classNamed(written string, names []string, numbers bool) string {
	for _, name := range names {
		if name == written || format.ClassName(name) == written {
			return name
		}
	}
	if class := classstats.Number(written); numbers && class != "" {
		return class
	}
	return ""
}

// query returns the query that selects the tasks of a request.
func (r ManyRequest) query() (q taskQuery) {
	q.Phase, q.UIDs = "", map[string]bool{}
	if of := r.Selector; of != nil {
		values := map[string][]string{"team": of.Teams, "status": of.Statuses, "class": of.Classes, "kind": of.Kinds, "pool": of.Pools}
		if of.By != "" {
			values["by"] = []string{of.By}
		}
		if of.Text != "" {
			values["q"] = []string{of.Text}
		}
		if of.Finished && len(of.Statuses) == 0 {
			values["tab"] = []string{"finished"}
		}
		return (&Pages{}).taskQuery(values)
	}
	for _, uid := range r.UIDs {
		q.UIDs[uid] = true
	}
	return q
}

// matches reports whether the selector of a request has the name of a task.
func (r ManyRequest) matches(t queries.Item) bool {
	return r.Selector == nil || len(r.Selector.Names) == 0 || slices.ContainsFunc(r.Selector.Names, func(pattern string) bool {
		found, err := path.Match(pattern, t.Name)
		return found && err == nil
	})
}

// podsAnswer lists the pods of a task.
type podsAnswer struct {
	Pods []podAnswer `json:"pods"`
}

type podAnswer struct {
	Name       string    `json:"name"`
	Node       string    `json:"node,omitempty"`
	Phase      string    `json:"phase"`
	Created    time.Time `json:"created"`
	Containers []string  `json:"containers"`
	Problem    string    `json:"problem,omitempty"` // the scheduler's message while it finds no node
	Index      *int32    `json:"index,omitempty"`   // of an array
	ExitCode   *int32    `json:"exitCode,omitempty"`
	Trouble    string    `json:"trouble,omitempty"` // what it reports of failures and restarts
}

// podsJSON answers GET …/pods.
func (h *Pages) podsJSON(c echo.Context) error {
	pods, err := h.Logs.Pods(c.Request().Context(), console.UserOf(c), address(c, c.QueryParam("uid")))
	if err != nil {
		return err
	}
	answer := podsAnswer{Pods: []podAnswer{}}
	for _, p := range pods {
		_, main := p.Containers()
		answer.Pods = append(answer.Pods, podAnswer{Name: p.Name, Node: p.Node, Phase: string(p.Phase), Created: p.CreationTimestamp.UTC(), Containers: main, Problem: p.Problem, Index: p.Index, ExitCode: p.ExitCode(), Trouble: p.Trouble.Words()})
	}
	return c.JSON(http.StatusOK, answer)
}

// tokenInterval is how often the token and the permission of a reader are checked who follows a log.
const tokenInterval = 5 * time.Second

// logTrailer is a trailer of a log: ended if the container has ended, and absent if the log may
// go on.
const logTrailer = "Kuota-Log"

// logText answers GET …/logs: the log of a container, as it wrote it. With ?follow=true it goes
// on until the container ends, or the token.
func (h *Pages) logText(c echo.Context) error {
	q := logQuery(c)
	q.Wait = c.QueryParam("follow") == "true"
	ctx, stop := context.WithCancel(c.Request().Context())
	defer stop()
	if q.Pod == "" {
		pods, err := h.Logs.Pods(ctx, console.UserOf(c), q.Task)
		switch {
		case err != nil:
			return err
		case len(pods) == 0:
			return &governance.Error{Kind: governance.NotFound, Op: "read log", Message: "The task has no pods now, so there is no log."}
		}
		q.Pod = pods[0].Name
	}
	log, err := h.Logs.Open(ctx, console.UserOf(c), q)
	if err != nil {
		return err
	}
	defer log.Close()
	if q.Wait {
		who := h.Bulk.Session(c)
		go func() {
			defer stop() // ends the log
			for governance.Sleep(ctx, tokenInterval) == nil {
				reader, err := who(ctx)
				if err != nil {
					return
				}
				if may, err := h.Logs.May(ctx, console.User(reader), q.Task.Namespace); err != nil || !may {
					return
				}
			}
		}()
	}
	c.Response().Header().Set("Trailer", logTrailer)
	err = web.SendText(c, log)
	switch {
	case q.Wait && ctx.Err() != nil:
		return nil // the reader has left, or signs in again
	case err == nil:
		c.Response().Header().Set(logTrailer, "ended")
	}
	return err
}

// known refuses values of filters that no list has. A page leaves them out, and a program would take an
// empty list for an answer.
func known(handler func(echo.Context, access.Scope) error) func(echo.Context, access.Scope) error {
	return func(c echo.Context, scope access.Scope) error {
		var wrong governance.FieldErrors
		for _, status := range c.QueryParams()["status"] {
			if !slices.Contains(tasks.States, tasks.State(status)) && renamedStates[status] == "" {
				var names []string
				for _, state := range tasks.States {
					names = append(names, string(state))
				}
				wrong.Add("status", "is "+strconv.Quote(status)+", want one of "+strings.Join(names, ", "))
			}
		}
		for name, values := range map[string][]string{"tab": {"active", "finished"}, "order": {"asc", "desc"}} {
			if value := c.QueryParam(name); value != "" && !slices.Contains(values, value) {
				wrong.Add(name, "is "+strconv.Quote(value)+", want "+strings.Join(values, " or "))
			}
		}
		if page := c.QueryParam("page"); page != "" {
			if n, err := strconv.Atoi(page); err != nil || n < 1 {
				wrong.Add("page", "is "+strconv.Quote(page)+", want a number from 1")
			}
		}
		if len(wrong) > 0 {
			return &governance.Error{Kind: governance.Invalid, Op: "list tasks", Message: "Some values are not valid.", Fields: wrong}
		}
		return handler(c, scope)
	}
}
