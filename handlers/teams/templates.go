package teams

import (
	"net/http"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/submit/recipes"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// The actions of the page with templates.
const (
	actionTemplate = "template" // the values are those of a page that submits, whose task becomes a template
	actionKeep     = "keep"     // saves the template
	actionDelete   = "delete"
)

// templates answers GET /teams/{team}/templates: the templates of a team.
func (h *Pages) templates(c echo.Context) error {
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	return h.renderTemplates(c, http.StatusOK, t, teamviews.TemplatesPage{Saved: c.QueryParam("saved"), Deleted: c.QueryParam("deleted")})
}

// changeTemplates answers POST to the same address: it shows a task with the form that saves
// it as a template, saves it, or deletes a template.
func (h *Pages) changeTemplates(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	action, ctx, user := values.Get("action"), c.Request().Context(), console.UserOf(c)
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	if action == actionDelete {
		name := values.Get("template")
		if err := h.Submit.DeleteTemplate(ctx, user, t, name); err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, urls.TeamTemplates(t.Name)+"?deleted="+name)
	}
	if action == actionTemplate && !values.Has("text") {
		form := readSubmitForm(values, "")
		text, ok := h.textOf(t, form)
		if !ok {
			form.submitted = true // shows what to correct
			return h.renderSubmit(c, http.StatusUnprocessableEntity, t, form, nil)
		}
		values.Set("text", text)
	}
	read := teamviews.ManifestPage{RequestID: values.Get("request-id")}
	read.Text.Value, read.Text.Error = forms.TextOrFile(values)
	plan, err := readText(t, &read)
	switch {
	case err != nil:
		return err
	case plan == nil:
		return h.renderManifest(c, http.StatusUnprocessableEntity, t, read)
	}
	page := teamviews.TemplatesPage{Text: read.YAML, Kind: read.Kind, Name: views.TextField{Value: read.Name}}
	if action != actionKeep {
		return h.renderTemplates(c, http.StatusOK, t, page)
	}
	page.Name.Value = strings.TrimSpace(values.Get("template"))
	err = h.Submit.SaveTemplate(ctx, user, t, page.Name.Value, read.YAML)
	ours := formError(err)
	switch {
	case err == nil:
		return c.Redirect(http.StatusSeeOther, urls.TeamTemplates(t.Name)+"?saved="+page.Name.Value)
	case ours == nil:
		return err
	}
	page.Failure = ours.Message
	for _, f := range ours.Fields {
		page.Name.Error = format.Sentence(f.Message)
	}
	return h.renderTemplates(c, console.Statuses[ours.Kind], t, page)
}

func (h *Pages) renderTemplates(c echo.Context, status int, t submit.Team, page teamviews.TemplatesPage) error {
	found, err := h.Submit.Templates(c.Request().Context(), console.UserOf(c), t)
	if err != nil && governance.KindOf(err) != governance.Unavailable {
		return err
	}
	page.Unknown = err != nil
	for _, one := range found {
		page.Rows = append(page.Rows, teamviews.TemplateRow{Name: one.Name, Kind: one.Kind, Created: format.Time(one.Created), URL: urls.TeamTemplate(t.Name, one.Name)})
	}
	for _, r := range recipes.All {
		page.Recipes = append(page.Recipes, teamviews.RecipeRow{Name: r.Name, Title: r.Title, About: r.About, NotRun: r.NotRun, URL: urls.With(urls.TeamSubmit(t.Name), nil, "recipe", r.Name)})
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = "Templates and recipes", "teams"
	page.Team, page.TeamURL, page.SubmitURL, page.Action = t.Name, urls.Team(t.Name), urls.TeamSubmit(t.Name), urls.TeamTemplates(t.Name)
	page.User, page.MaySave = console.UserOf(c).Name, t.MayScript
	return web.Render(c, status, teamviews.Templates(page))
}
