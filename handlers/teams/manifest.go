package teams

import (
	"crypto/rand"
	"net/http"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/manifest"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// manifest answers GET /teams/{team}/manifest: an empty form, or the text that was posted
// after the session ended.
func (h *Pages) manifest(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		t, err := h.submitTo(c)
		if err != nil {
			return err
		}
		page := views.ManifestPage{RequestID: rand.Text()}
		if sent := s.Draft(c); sent != nil {
			page.RequestID, page.Resumed = sent.Get("request-id"), true
			page.Text.Value, _ = forms.TextOrFile(sent)
		}
		return h.renderManifest(c, http.StatusOK, t, page)
	}
}

// submitTo returns the team of the address, to which the user can submit elastic tasks.
func (h *Pages) submitTo(c echo.Context) (submit.Team, error) {
	t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
	if err == nil && !t.MaySubmitElastic() {
		err = &governance.Error{Kind: governance.Forbidden, Op: "submit task", Message: "You cannot submit elastic tasks to this team. Ask a cluster admin to add you as a member."}
	}
	return t, err
}

// submitManifest answers POST /teams/{team}/manifest: the elastic task of the text with
// its verdict and what was not imported. action=save submits it.
func (h *Pages) submitManifest(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	page := views.ManifestPage{RequestID: values.Get("request-id")}
	page.Text.Value, page.Text.Error = forms.TextOrFile(values)
	t, err := h.submitTo(c)
	switch {
	case console.Unavailable(err):
		page.Failure = "The cluster cannot be reached, so nothing was read. Your text is kept below; try again in a moment."
		return h.renderManifest(c, http.StatusServiceUnavailable, submit.Team{Name: c.Param("team")}, page)
	case err != nil:
		return err
	case page.Text.Error != "":
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, page)
	}
	object, others := elasticTask(imports.Read([]byte(page.Text.Value)))
	if object.ElasticJob == nil {
		page.NotImported, page.Text.Error = forms.Lines(others), "This text has no elastic task. See above for the reasons."
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, page)
	}
	plan, changed, wrong := t.PlanElasticJob(object.ElasticJob)
	known := func(p governance.FieldError) bool { return slices.Contains(wrong, p) }
	page.Name, page.YAML = object.ElasticJob.Name, object.YAML()
	page.NotImported = forms.Lines(slices.Concat(slices.DeleteFunc(object.Problems, known), changed, others))
	if len(wrong) > 0 {
		page.Wrong = forms.Lines(wrong)
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, page)
	}
	page.YAML = manifest.ElasticJobYAML(plan.ElasticJob())
	if values.Get("action") == "save" {
		done, err := h.Submit.SubmitElasticJob(c.Request().Context(), console.UserOf(c), t, object.ElasticJob, page.RequestID)
		if err == nil {
			return redirectToTask(c, t, done)
		}
		ours := formError(err)
		if ours == nil {
			return err
		}
		page.Failure, page.Wrong = ours.Message, forms.Lines(ours.Fields)
		return h.renderManifest(c, console.Statuses[ours.Kind], t, page)
	}
	verdict, err := h.Submit.Verify(c.Request().Context(), console.UserOf(c), plan)
	switch {
	case console.Unavailable(err):
		page.Verdict = unknownVerdict
	case err != nil:
		return err
	default:
		page.Verdict = verdictOf(verdict, plan)
	}
	return h.renderManifest(c, http.StatusOK, t, page)
}

// elasticTask returns the first elastic task of a text, and the problems with all else.
func elasticTask(read imports.Result) (task imports.Object, problems []governance.FieldError) {
	problems = read.Problems
	for _, o := range read.Objects {
		switch {
		case o.ElasticJob != nil && task.ElasticJob == nil:
			task = o
		case o.ElasticJob != nil:
			problems = append(problems, governance.FieldError{Message: "elastic task " + o.ElasticJob.Name + " was not read: submit one task at a time"})
		case o.Allocation != nil:
			problems = append(problems, governance.FieldError{Message: "the allocation of team " + o.Allocation.Name + " was not read: admins import it under Policies"})
		default:
			problems = append(problems, governance.FieldError{Message: "the cluster policy was not read: admins import it under Policies"})
		}
	}
	return task, problems
}

func (h *Pages) renderManifest(c echo.Context, status int, t submit.Team, page views.ManifestPage) error {
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = "Submit from a manifest", "teams"
	page.Team, page.TeamURL, page.Action = t.Name, urls.Team(t.Name), urls.TeamManifest(t.Name)
	page.User = console.UserOf(c).Name
	return web.Render(c, status, views.Manifest(page))
}
