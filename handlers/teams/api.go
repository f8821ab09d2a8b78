package teams

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// registerAPI adds the endpoints of teams.
func (h *Pages) registerAPI(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/teams", Summary: "List teams with their quota and usage", Query: teamParameters, Answer: teamsAnswer{}, Handler: h.Within(h.teamsJSON)})
	s.API(web.Endpoint{
		Method: http.MethodPost, Path: "/teams/:team/tasks", Summary: "Submit the tasks of a manifest, or only check them", Status: http.StatusCreated,
		Query: []web.Parameter{{Name: "dryRun", About: "true submits nothing and answers what would happen"}},
		Body:  SubmitRequest{}, Answer: SubmitAnswer{}, Handler: h.Handler(h.Writing(h.submitText)),
	})
}

var teamParameters = []web.Parameter{
	{Name: "resource", About: "in this resource, such as cpu; default the accelerator that the cluster has most of"}, {Name: "pool", About: "in this pool"},
	{Name: "q", About: "whose name contains this"}, {Name: "sort", About: "column, such as held"}, {Name: "order", About: "asc or desc"}, {Name: "page", About: "page of the list"},
}

// SubmitRequest has manifests of tasks: Jobs, PyTorchJobs, RayJobs, JobSets, ElasticJobs, or
// training jobs of other operators that become ElasticJobs.
type SubmitRequest struct {
	Manifest string `json:"manifest"` // YAML with one or several documents, or JSON
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
	Path      string         `json:"path"` // of its page
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
	texts := submit.Texts(request.Manifest)
	if n := len(texts); n == 0 || n > maxTexts {
		return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "Some values are not valid.", Fields: []governance.FieldError{{Path: "manifest", Message: fmt.Sprintf("has %d documents, want 1 to %d tasks", n, maxTexts)}}}
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
	for i := range plans {
		if err := h.Submit.SubmitOnce(ctx, user, plans[i], key, i); err != nil {
			if i > 0 {
				err = &governance.Error{Kind: governance.KindOf(err), Op: "submit task", Message: fmt.Sprintf("%d of %d tasks were submitted. The next one, %s, was not: %s", i, len(plans), answer.Tasks[i].Name, messageOf(err)), Err: err}
			}
			return err
		}
		answer.Tasks[i].Created = true
	}
	return c.JSON(http.StatusCreated, answer)
}

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
