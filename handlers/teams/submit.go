package teams

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Submit plans, checks and submits tasks.
type Submit interface {
	Team(ctx context.Context, user governance.User, name string) (submit.Team, error)
	Check(ctx context.Context, user governance.User, p submit.Plan) (submit.Verdict, error)
	Verify(ctx context.Context, user governance.User, p submit.Plan) (submit.Verdict, error)
	Submit(ctx context.Context, user governance.User, t submit.Team, r submit.Request, form string) (submit.Submitted, error)
	// SubmitPlan is Submit for a task that was read from a manifest, and Try the same as a
	// dry run.
	SubmitPlan(ctx context.Context, user governance.User, p submit.Plan, form string) (submit.Submitted, error)
	Try(ctx context.Context, user governance.User, p submit.Plan) error
	// After returns the tasks with these names, which a task of the team waits for.
	After(ctx context.Context, user governance.User, t submit.Team, names []string) ([]tasks.After, error)
	// SubmitOnce is SubmitPlan for part of a request with an idempotency key.
	SubmitOnce(ctx context.Context, user governance.User, p submit.Plan, key string, part int) (uid string, err error)
	taskpages.Again
	// Again returns the manifest that submits a task again, and Differences what a form does
	// not express of a task that was read from a manifest.
	Again(ctx context.Context, user governance.User, t submit.Team, kind, name, uid string) (string, error)
	Differences(ctx context.Context, user governance.User, form, from submit.Plan) ([]string, error)
	// Templates returns the templates of a team, and FromTemplate the manifest of one.
	Templates(ctx context.Context, user governance.User, t submit.Team) ([]submit.Template, error)
	FromTemplate(ctx context.Context, user governance.User, t submit.Team, name string) (string, error)
	SaveTemplate(ctx context.Context, user governance.User, t submit.Team, name, manifest string) error
	DeleteTemplate(ctx context.Context, user governance.User, t submit.Team, name string) error
	// Taken reports whether a task of that kind has that name already.
	Taken(t submit.Team, kind submit.Kind, name string) bool
}

// submitPage answers GET /teams/{team}/submit, or that of a service: the form that submits
// a task. The address may contain values of the form.
func (h *Pages) submitPage(s *web.Server, service serves) func(echo.Context) error {
	return func(c echo.Context) error {
		t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
		if err != nil {
			return err
		}
		form := emptySubmitForm(t)
		form.emptyServing(service, t)
		if name := c.QueryParam("recipe"); name != "" {
			if form, err = recipeForm(t, name, c.QueryParam("pool")); err != nil {
				return err
			}
		}
		if query := c.QueryParams(); len(query) > 0 {
			form.read(query)
		}
		if typed := s.Draft(c); typed != nil {
			form = readSubmitForm(typed, service)
			form.resumed = true
		}
		refused, err := h.setAfter(c, &t, form)
		if err != nil {
			return err
		}
		return h.renderSubmit(c, http.StatusOK, t, form, refused)
	}
}

// submitTask answers POST to the same address: it submits a task, or shows the form again
// with the verdict.
func (h *Pages) submitTask(service serves) func(echo.Context) error {
	return func(c echo.Context) error {
		values, err := web.FormValues(c)
		if err != nil {
			return err
		}
		form, action := readSubmitForm(values, service), values.Get("action")
		form.do(action)
		form.verify = action == forms.ActionVerify
		t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
		if console.Unavailable(err) {
			return h.refuseTask(c, service.unreached(c.Param("team")), form, err)
		}
		if err != nil {
			return err
		}
		if may, _ := service.may(t); !may {
			return &governance.Error{Kind: governance.Forbidden, Op: "submit task", Message: "You cannot submit tasks to this team. Ask a cluster admin to add you as a member."}
		}
		request, wrong := form.request(t)
		refused, err := h.setAfter(c, &t, form)
		if err != nil {
			return err
		}
		if action != "save" {
			return h.renderSubmit(c, http.StatusOK, t, form, refused)
		}
		if refused != nil {
			return h.renderSubmit(c, console.Statuses[refused.Kind], t, form, refused)
		}
		if len(wrong) > 0 {
			return h.renderSubmit(c, http.StatusUnprocessableEntity, t, form, nil)
		}
		done, err := h.Submit.Submit(c.Request().Context(), console.UserOf(c), t, request, form.id)
		if err != nil {
			return h.refuseTask(c, t, form, err)
		}
		return redirectToTask(c, t, done)
	}
}

// setAfter sets what the tasks of a team wait for, or returns why the form's names cannot be used.
func (h *Pages) setAfter(c echo.Context, t *submit.Team, f submitForm) (refused *governance.Error, err error) {
	t.After, err = h.Submit.After(c.Request().Context(), console.UserOf(c), *t, strings.Fields(f.after))
	if refused = formError(err); refused != nil {
		err = nil
	}
	return refused, err
}

// redirectToTask opens the page of a submitted task, or that of the team if the task is
// not listed yet.
func redirectToTask(c echo.Context, t submit.Team, done submit.Submitted) error {
	if done.Listed {
		return c.Redirect(http.StatusSeeOther, urls.TaskOf(done.Namespace, string(done.Kind), done.Name))
	}
	query := url.Values{"submitted": {done.Name}}
	if done.Kind != submit.Job {
		query.Set("kind", string(done.Kind))
	}
	return c.Redirect(http.StatusSeeOther, urls.Team(t.Name)+"?"+query.Encode())
}

// refuseTask shows the form again, as typed, with the reason why the task was not
// submitted. Internal errors have a page of their own.
func (h *Pages) refuseTask(c echo.Context, t submit.Team, form submitForm, err error) error {
	ours := formError(err)
	if ours == nil {
		return err
	}
	return h.renderSubmit(c, console.Statuses[ours.Kind], t, form, ours)
}

// noForm returns why the user cannot submit tasks here.
func (h *Pages) noForm(t submit.Team) string {
	switch why := h.ReadOnlyReason(); {
	case t.Managed && why != "":
		return why
	case t.Managed:
		return "Only users who may create jobs in the team's namespace can submit tasks here. An admin adds members in the team's allocation."
	}
	return "Kueue manages no kind of job in this cluster that can be submitted here, such as Jobs by its integration batch/job. A cluster admin can enable it in Kueue's configuration."
}

func (h *Pages) renderSubmit(c echo.Context, status int, t submit.Team, form submitForm, refused *governance.Error) error {
	view, err := h.submitView(c, t, form, refused)
	if err != nil {
		return err
	}
	if web.WantsFragment(c) {
		return web.Render(c, status, teamviews.SubmitFormBody(view))
	}
	page := teamviews.SubmitPage{Team: t.Name, TeamURL: urls.Team(t.Name), Kinds: form.serves.links(t)}
	switch may, _ := form.serves.may(t); {
	case may:
		page.Form = &view
		if form.serves == "" {
			page.ManifestURL, page.TemplatesURL = urls.TeamManifest(t.Name), urls.TeamTemplates(t.Name)
		}
	case form.serves != "":
		page.Manifests, page.NoForm = view.Manifests, h.noService(form.serves, t)
	default:
		page.Manifests, page.NoForm = view.Manifests, h.noForm(t)
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Lead = form.serves.words()
	page.Active = "teams"
	return web.Render(c, status, teamviews.Submit(page))
}
