package teams

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
)

// registerAPI adds the endpoints of teams.
func (h *Pages) registerAPI(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/teams", Summary: "List teams with their quota and usage", Query: teamParameters, Answer: teamsAnswer{}, Handler: h.Within(h.teamsJSON)})
	s.API(web.Endpoint{
		Method: http.MethodPost, Path: "/teams/:team/tasks", Summary: "Submit the tasks of a manifest, or only check them", Status: http.StatusCreated,
		Query: []web.Parameter{{Name: "dryRun", About: "true submits nothing and answers what would happen"}},
		Keyed: true, Body: SubmitRequest{}, Answer: SubmitAnswer{}, Handler: h.Handler(h.Writing(h.submitText)),
	})
	h.registerTemplates(s)
}

var teamParameters = []web.Parameter{
	{Name: "department", About: "of the teams in this department and below it"},
	{Name: "resource", About: "in this resource, such as cpu; default the accelerator that the cluster has most of"}, {Name: "pool", About: "in this pool"},
	{Name: "q", About: "whose name contains this"}, {Name: "sort", About: "column, such as held"}, {Name: "order", About: "asc or desc"}, {Name: "page", About: "page of the list"},
}

// SubmitRequest has manifests of tasks: Jobs, PyTorchJobs, RayJobs, JobSets, ElasticJobs, or
// training jobs of other operators that become ElasticJobs. Or it has the values of one task.
type SubmitRequest struct {
	Manifest string       `json:"manifest,omitempty"` // YAML with one or several documents, or JSON
	Task     *TaskRequest `json:"task,omitempty"`     // in place of a manifest
	Priority *int32       `json:"priority,omitempty"` // of the tasks, from 0 to 99 in place of a class, if the policy allows numbers
	After    []string     `json:"after,omitempty"`    // tasks of the namespace that have to end before, such as prep, job/prep or prep:any, which may fail
}

// TaskRequest is a task in the values of the form of tasks: equal pods in one pool. What is left
// out is filled in as there.
type TaskRequest struct {
	Name           string            `json:"name"`
	Kind           string            `json:"kind,omitempty"`  // default Job
	Share          string            `json:"share,omitempty"` // of the team; default the team's own queue
	Class          string            `json:"class,omitempty"` // priority class, or a number if the policy allows it; default the lowest class
	Pool           string            `json:"pool,omitempty"`  // default the first of the team
	OtherPools     []string          `json:"otherPools,omitempty"`
	Pods           int32             `json:"pods,omitempty"`         // default 1
	Least          int32             `json:"least,omitempty"`        // pods with which it may start
	Accelerators   *int64            `json:"accelerators,omitempty"` // of each pod, as vcpu and memory
	VCPU           string            `json:"vcpu,omitempty"`
	Memory         string            `json:"memory,omitempty"`  // GiB
	Profile        string            `json:"profile,omitempty"` // of parts of GPUs, such as mig-1g.10gb
	Parts          int32             `json:"parts,omitempty"`
	Image          string            `json:"image,omitempty"`
	Command        string            `json:"command,omitempty"`   // for sh -c
	Script         string            `json:"script,omitempty"`    // in place of a command
	TimeLimit      string            `json:"timeLimit,omitempty"` // such as 1h30m
	Env            map[string]string `json:"env,omitempty"`
	Secrets        []string          `json:"secrets,omitempty"`      // names, or NAME=secret/key
	Volumes        []string          `json:"volumes,omitempty"`      // /path=claim, or /path=claim:ro
	SharedMemory   string            `json:"sharedMemory,omitempty"` // GiB
	ServiceAccount string            `json:"serviceAccount,omitempty"`
	Processes      int32             `json:"processes,omitempty"` // of each pod, for torchrun
	Tries          int32             `json:"tries,omitempty"`
	Recipe         string            `json:"recipe,omitempty"`  // which the other values change
	Array          string            `json:"array,omitempty"`   // such as 1-200%20: indexes 1 to 200, 20 at once; without %20 as many as fit when it starts
	Elastic        *ElasticRequest   `json:"elastic,omitempty"` // pods are its minimum
}

// ElasticRequest makes a task elastic.
type ElasticRequest struct {
	Max   int32   `json:"max"` // pods
	Step  int32   `json:"step,omitempty"`
	Sizes []int32 `json:"sizes,omitempty"` // in place of max and step
	// Times are seconds by the name of the field of elasticPolicy, such as
	// gracefulShutdownTimeoutInSeconds; those that are missing have the defaults.
	Times map[string]int32 `json:"times,omitempty"`
	// ScaleConfig has variables by size, such as {"8": {"BATCH_SIZE": "32"}}.
	ScaleConfig map[string]map[string]string `json:"scaleConfig,omitempty"`

	Growth         v1alpha1.Growth `json:"growth,omitempty"`         // Provision asks for nodes; default ExistingNodes
	MaxUnscheduled int32           `json:"maxUnscheduled,omitempty"` // pods that wait for nodes at once; default those of one step
}

// values returns a request as the form of tasks has it.
func (r *TaskRequest) values(t submit.Team) url.Values {
	empty := emptySubmitForm(t)
	values := url.Values{
		"name": {r.Name}, "kind": {r.Kind}, "share": {r.Share}, "class": {cmp.Or(r.Class, empty.class)}, "pool": {cmp.Or(r.Pool, empty.pool)}, otherPools: r.OtherPools, "pods": {"1"},
		"vcpu": {r.VCPU}, "memory": {r.Memory}, "profile": {r.Profile}, "image": {r.Image}, "command": {r.Command}, "limit": {r.TimeLimit},
		"secrets": {strings.Join(r.Secrets, "\n")}, "volumes": {strings.Join(r.Volumes, "\n")}, "shm": {r.SharedMemory}, "account": {r.ServiceAccount}, "array": {r.Array},
	}
	named := func(c submit.PriorityClass) bool { return format.ClassName(c.Name) == r.Class }
	if i := slices.IndexFunc(t.Classes, named); i >= 0 {
		values.Set("class", t.Classes[i].Name)
	} else if slices.ContainsFunc(t.Numbers, named) {
		values.Set("priority", r.Class)
	}
	if t.Priority != "" {
		values.Set("priority", t.Priority)
	}
	if r.Script != "" {
		values.Set("script", r.Script)
	}
	if r.Accelerators != nil {
		values.Set("accelerators", strconv.FormatInt(*r.Accelerators, 10))
	}
	for name, n := range map[string]int32{"pods": r.Pods, "least": r.Least, "count": r.Parts, "processes": r.Processes, "tries": r.Tries} {
		if n != 0 {
			values.Set(name, strconv.Itoa(int(n)))
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, name+"="+r.Env[name])
	}
	values.Set("env", strings.Join(env, "\n"))
	if e := r.Elastic; e != nil {
		values.Set("elastic", "true")
		var sizes []string
		for _, size := range e.Sizes {
			sizes = append(sizes, strconv.Itoa(int(size)))
		}
		values.Set("sizes", strings.Join(sizes, ","))
		values.Set("growth", string(e.Growth))
		for name, n := range map[string]int32{"max": e.Max, "step": e.Step, "unscheduled": e.MaxUnscheduled} {
			if n != 0 {
				values.Set(name, strconv.Itoa(int(n)))
			}
		}
		for field, seconds := range e.Times {
			if input, i := inputOf("elastic." + field); i >= 0 {
				values.Set(input.id, strconv.Itoa(int(seconds)))
			}
		}
		scale, _ := forms.ScaleLines(e.ScaleConfig) // invalid finds values of several lines
		values.Set("scale", scale)
	}
	return values
}

// read plans a request.
func (r *TaskRequest) read(t submit.Team) (submit.Reading, error) {
	form, err := r.overRecipe(t)
	if err != nil {
		return submit.Reading{}, err
	}
	request, wrong := form.request(t)
	for _, value := range r.Env {
		if strings.ContainsAny(value, "\r\n") {
			wrong = append(wrong, governance.FieldError{Path: "env", Message: "has a value of several lines: put it into a Secret"})
		}
	}
	if r.Elastic != nil {
		wrong = append(wrong, r.Elastic.unreadable()...)
	}
	if t.Priority != "" && r.Class != "" && r.Class != t.Priority {
		wrong = append(wrong, governance.FieldError{Path: "class", Message: "is " + r.Class + ", and the priority is " + t.Priority + ": remove one of them"})
	}
	plan, more := t.Complete(request)
	read := submit.Reading{Name: r.Name, Kind: string(plan.Kind), Wrong: append(wrong, more...)}
	for i := range read.Wrong {
		read.Wrong[i].Path = "task." + read.Wrong[i].Path
	}
	if len(read.Wrong) > 0 {
		return read, nil
	}
	m, err := plan.Manifest()
	read.Plan, read.Manifest = &plan, m.Text
	return read, err
}

// unreadable returns what the form cannot hold.
func (e *ElasticRequest) unreadable() (wrong governance.FieldErrors) {
	fields, _ := actions.TimeFields()
	for field := range e.Times {
		if !slices.Contains(fields, actions.SizeField(field)) {
			wrong.Addf("elastic.times", "has %q, which is none of %v", field, fields)
		}
	}
	_, names := forms.ScaleLines(e.ScaleConfig)
	for _, name := range names {
		wrong.Addf("elastic.scaleConfig", "has a value of several lines: %s", name)
	}
	return wrong
}

// SubmitAnswer has what became of each task, in the order of the manifest.
type SubmitAnswer struct {
	Tasks []SubmittedTask `json:"tasks"`
}

// SubmittedTask is a task that was submitted or, as a dry run, would be.
type SubmittedTask struct {
	Namespace string         `json:"namespace"`
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	UID       string         `json:"uid,omitempty"` // absent for a dry run
	Path      string         `json:"path"`          // of its page
	Created   bool           `json:"created"`
	Changed   []web.Field    `json:"changed,omitempty"` // what is moved, replaced or left out of the manifest
	Verdict   *SubmitVerdict `json:"verdict,omitempty"` // of a dry run
	Manifest  string         `json:"manifest"`          // as it is created
}

// SubmitVerdict is what Kueue would do with a task that is submitted now.
type SubmitVerdict struct {
	Outcome   string   `json:"outcome"` // Starts, Preempts, Waits, Never or Unknown
	Headline  string   `json:"headline"`
	Text      string   `json:"text,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Simulated bool     `json:"simulated"`           // with Kueue's scheduler
	Preempted []string `json:"preempted,omitempty"` // tasks, as far as the reader sees them
}

// maxTexts is how many tasks one request submits.
const maxTexts = 200

// submitText answers POST /teams/{team}/tasks. Nothing is submitted if any task is not valid.
func (h *Pages) submitText(c echo.Context) error {
	var request SubmitRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	ctx, user, key := c.Request().Context(), console.UserOf(c), c.Request().Header.Get("Idempotency-Key")
	if t.After, err = h.Submit.After(ctx, user, t, request.After); err != nil {
		return err
	}
	if request.Priority != nil {
		t.Priority = strconv.Itoa(int(*request.Priority))
	}
	texts := submit.Texts(request.Manifest)
	if request.Task != nil && request.Manifest == "" {
		texts = []string{""}
	}
	if n := len(texts); n == 0 || n > maxTexts || request.Task != nil && request.Manifest != "" {
		return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "manifest", Message: fmt.Sprintf("has %d documents, want 1 to %d tasks, or task in place of it", n, maxTexts)}}}
	}
	id := rand.Text()
	if key != "" {
		key = web.KeyOf(user.Name, key)
		id = key
	}
	var wrong governance.FieldErrors
	plans, answer := make([]submit.Plan, len(texts)), SubmitAnswer{}
	for i, text := range texts {
		read, err := t.ReadText(text, fmt.Sprintf("%s/%d", id, i))
		if request.Task != nil {
			read, err = request.Task.read(t)
		}
		if err != nil {
			return err
		}
		problems := read.Wrong
		if read.Plan == nil && len(problems) == 0 {
			problems = append(slices.Clone(read.Changed), governance.FieldError{Message: "This text has no task."})
		}
		for _, p := range problems {
			if len(texts) > 1 {
				p.Path = strings.TrimSuffix(fmt.Sprintf("documents[%d].%s", i, p.Path), ".")
			}
			wrong = append(wrong, p)
		}
		if read.Plan != nil {
			plans[i] = *read.Plan
		}
		one := SubmittedTask{Namespace: t.Namespace, Kind: read.Kind, Name: read.Name, Path: urls.TaskOf(t.Namespace, read.Kind, read.Name), Manifest: read.Manifest}
		for _, changed := range read.Changed {
			one.Changed = append(one.Changed, web.Field{Field: changed.Path, Message: changed.Message})
		}
		answer.Tasks = append(answer.Tasks, one)
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "Some values are not valid.", Fields: wrong}
	}
	if c.QueryParam("dryRun") == "true" {
		for i := range plans {
			if answer.Tasks[i].Verdict, err = h.tryPlan(c, plans[i]); err != nil {
				return err
			}
		}
		return c.JSON(http.StatusOK, answer)
	}
	failures := make([]error, len(plans))
	var creating errgroup.Group
	creating.SetLimit(parallel)
	for i := range plans {
		creating.Go(func() error {
			failures[i] = governance.Recovered(func() (err error) {
				answer.Tasks[i].UID, err = h.Submit.SubmitOnce(ctx, user, plans[i], key, i)
				return err
			})
			answer.Tasks[i].Created = failures[i] == nil
			return nil
		})
	}
	_ = creating.Wait()
	failed := slices.IndexFunc(failures, func(err error) bool { return err != nil })
	switch {
	case failed < 0:
		return c.JSON(http.StatusCreated, answer)
	case len(plans) == 1:
		return failures[0]
	}
	done := len(slices.DeleteFunc(slices.Clone(failures), func(err error) bool { return err != nil }))
	return &governance.Error{Kind: governance.KindOf(failures[failed]), Op: "submit task", Message: fmt.Sprintf("%d of %d tasks were submitted. %s was not: %s", done, len(plans), answer.Tasks[failed].Name, messageOf(failures[failed])), Err: failures[failed]}
}

// parallel is how many tasks of a request are created at a time.
const parallel = 8

// tryPlan returns the verdict on a plan, after a dry run.
func (h *Pages) tryPlan(c echo.Context, plan submit.Plan) (*SubmitVerdict, error) {
	ctx, user := c.Request().Context(), console.UserOf(c)
	if err := h.Submit.Try(ctx, user, plan); err != nil {
		return nil, err
	}
	verdict, err := h.Submit.Verify(ctx, user, plan)
	if err != nil {
		return nil, err
	}
	words := verdictOf(verdict, plan)
	answer := &SubmitVerdict{Outcome: string(verdict.Outcome), Headline: words.Headline, Text: words.Text, Notes: words.Notes, Simulated: words.Verified}
	switch trial := verdict.Trial; {
	case len(plan.Team.After) > 0 && answer.Outcome != string(submit.Never):
		answer.Outcome = string(submit.Waits)
	case trial == nil || trial.Failed != nil:
	case trial.Starts && len(trial.Preempted) > 0:
		answer.Outcome = string(submit.Preempts)
	case trial.Starts:
		answer.Outcome = string(submit.Starts)
	case trial.Never:
		answer.Outcome = string(submit.Never)
	default:
		answer.Outcome = string(submit.Waits)
	}
	for _, task := range words.Preempted {
		answer.Preempted = append(answer.Preempted, task.Name)
	}
	return answer, nil
}

// messageOf returns why a task was not submitted, with its fields.
func messageOf(err error) string {
	ours := formError(err)
	if ours == nil {
		return "It failed. The log of the console has the reason."
	}
	text := ours.Message
	for _, f := range ours.Fields {
		text += " " + strings.TrimSpace(f.Path+" "+f.Message) + "."
	}
	return text
}
