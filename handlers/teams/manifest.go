package teams

import (
	"crypto/rand"
	"net/http"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	teamviews "kuota.dev/kuota/views/teams"
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
		page := teamviews.ManifestPage{RequestID: rand.Text()}
		if sent := s.Draft(c); sent != nil {
			page.RequestID, page.Resumed = sent.Get("request-id"), true
			page.Text.Value, _ = forms.TextOrFile(sent)
		}
		return h.renderManifest(c, http.StatusOK, t, page)
	}
}

// submitTo returns the team of the address, to which the user can submit tasks.
func (h *Pages) submitTo(c echo.Context) (submit.Team, error) {
	t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
	if err == nil && !t.MaySubmit {
		err = &governance.Error{Kind: governance.Forbidden, Op: "submit task", Message: "You cannot submit tasks to this team. Ask a cluster admin to add you as a member."}
	}
	return t, err
}

// The actions of the page beside reading the text.
const (
	actionSave = "save"
	actionEdit = "edit" // the values are those of the form, which becomes text
	actionForm = "form" // the text becomes the form
)

// submitManifest answers POST /teams/{team}/manifest: the task of the text with its verdict
// and what was not imported. action=save submits it.
func (h *Pages) submitManifest(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	page, action := teamviews.ManifestPage{RequestID: values.Get("request-id")}, values.Get("action")
	t, err := h.submitTo(c)
	if action == actionEdit {
		form := readSubmitForm(values, "")
		text, ok := h.textOf(t, form)
		switch {
		case console.Unavailable(err):
			return h.refuseTask(c, serves("").unreached(c.Param("team")), form, err)
		case err != nil:
			return err
		case !ok:
			form.submitted = true // shows what to correct
			return h.renderSubmit(c, http.StatusUnprocessableEntity, t, form, nil)
		}
		values.Set("text", text)
	}
	page.Text.Value, page.Text.Error = forms.TextOrFile(values)
	switch {
	case console.Unavailable(err):
		page.Failure = "The cluster cannot be reached, so nothing was read. Your text is kept below; try again in a moment."
		return h.renderManifest(c, http.StatusServiceUnavailable, submit.Team{Name: c.Param("team")}, page)
	case err != nil:
		return err
	case page.Text.Error != "":
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, page)
	}
	return h.readText(c, t, page, action)
}

// again answers GET /teams/{team}/again?kind=&name=&uid=&pods= and ?template=: the form with the
// values of a task of the team, with that many pods if they are given, or of a template; if it cannot express them all, the page with its manifest.
func (h *Pages) again(c echo.Context) error {
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	page := teamviews.ManifestPage{RequestID: rand.Text(), Again: c.QueryParam("name")}
	if template := c.QueryParam("template"); template != "" {
		page.Text.Value, err = h.Submit.FromTemplate(c.Request().Context(), console.UserOf(c), t, template)
	} else {
		page.Text.Value, err = h.Submit.Again(c.Request().Context(), console.UserOf(c), t, c.QueryParam("kind"), c.QueryParam("name"), c.QueryParam("uid"))
	}
	if pods, wrong := strconv.ParseInt(c.QueryParam("pods"), 10, 32); err == nil && wrong == nil && pods > 0 {
		page.Text.Value, err = submit.WithPods(page.Text.Value, int32(pods))
	}
	if index, wrong := strconv.ParseInt(c.QueryParam("index"), 10, 32); err == nil && wrong == nil {
		page.Text.Value, err = submit.WithIndex(page.Text.Value, int32(index))
	}
	if err != nil {
		return err
	}
	return h.readText(c, t, page, actionForm)
}

// readText does an action with the text of a page: it shows the task and its verdict, or
// the form, or submits it.
func (h *Pages) readText(c echo.Context, t submit.Team, page teamviews.ManifestPage, action string) error {
	plan, err := readText(t, &page)
	switch {
	case err != nil:
		return err
	case plan == nil:
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, page)
	}
	form, missed, err := h.express(c, t, *plan)
	if err != nil {
		return err
	}
	if action == actionForm && len(missed) == 0 {
		form.id = page.RequestID
		return h.renderSubmit(c, http.StatusOK, t, form, nil)
	}
	page.InForm, page.Missed = len(missed) == 0, missed
	user := console.UserOf(c)
	if action == actionSave {
		done, err := h.Submit.SubmitPlan(c.Request().Context(), user, *plan, page.RequestID)
		if err == nil {
			return redirectToTask(c, t, done)
		}
		return h.refuseManifest(c, t, page, err)
	}
	if err := h.Submit.Try(c.Request().Context(), user, *plan); err != nil {
		return h.refuseManifest(c, t, page, err)
	}
	verdict, err := h.Submit.Verify(c.Request().Context(), user, *plan)
	switch {
	case console.Unavailable(err):
		page.Verdict = unknownVerdict
	case err != nil:
		return err
	default:
		page.Verdict = verdictOf(verdict, *plan)
	}
	return h.renderManifest(c, http.StatusOK, t, page)
}

// textOf returns the manifest of a form; false if the form has errors.
func (h *Pages) textOf(t submit.Team, form submitForm) (string, bool) {
	request, wrong := form.request(t)
	plan, more := t.Plan(request)
	if len(wrong) > 0 || len(more) > 0 {
		return "", false
	}
	m, err := plan.Manifest()
	return m.Text, err == nil
}

// readText plans the task of the text, and adds to the page what it becomes. A text without
// a valid task has no plan but errors.
func readText(t submit.Team, page *teamviews.ManifestPage) (*submit.Plan, error) {
	read, err := t.ReadText(page.Text.Value, page.RequestID)
	page.Name, page.Kind, page.YAML = read.Name, read.Kind, read.Manifest
	page.NotImported, page.Wrong = forms.Lines(read.Changed), forms.Lines(read.Wrong)
	if read.Plan == nil && len(read.Wrong) == 0 {
		page.Text.Error = "This text has no task. See above for the reasons."
	}
	return read.Plan, err
}

// refuseManifest shows the text again with the reason why the task was not submitted.
func (h *Pages) refuseManifest(c echo.Context, t submit.Team, page teamviews.ManifestPage, err error) error {
	ours := formError(err)
	if ours == nil {
		return err
	}
	page.Failure, page.Wrong = ours.Message, forms.Lines(ours.Fields)
	return h.renderManifest(c, console.Statuses[ours.Kind], t, page)
}

func (h *Pages) renderManifest(c echo.Context, status int, t submit.Team, page teamviews.ManifestPage) error {
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = "Submit from a manifest", "teams"
	if page.Again != "" {
		page.Title = "Submit " + page.Again + " again"
	}
	page.FormURL, page.TemplatesURL = urls.TeamSubmit(t.Name), urls.TeamTemplates(t.Name)
	page.Team, page.TeamURL, page.Action = t.Name, urls.Team(t.Name), urls.TeamManifest(t.Name)
	page.User = console.UserOf(c).Name
	return web.Render(c, status, teamviews.Manifest(page))
}
