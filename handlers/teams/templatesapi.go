package teams

import (
	"net/http"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit/recipes"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

const apiTemplates = "/teams/:team/templates"

// registerTemplates adds the endpoints of templates.
func (h *Pages) registerTemplates(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiTemplates, Summary: "List the templates of a team", Answer: templatesAnswer{}, Handler: h.Handler(h.getTemplates)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiTemplates + "/:name", Summary: "Return the YAML of a template, with a name that no task has", Handler: h.Handler(h.getTemplate)})
	s.API(web.Endpoint{Method: http.MethodPost, Path: apiTemplates, Summary: "Save a task as a template", Body: TemplateRequest{}, Answer: console.DoneAnswer{}, Handler: h.Handler(h.Writing(h.postTemplate))})
	s.API(web.Endpoint{Method: http.MethodDelete, Path: apiTemplates + "/:name", Summary: "Delete a template", Answer: console.DoneAnswer{}, Handler: h.Handler(h.Writing(h.removeTemplate))})
}

// templatesAnswer is the answer of GET /teams/{team}/templates.
type templatesAnswer struct {
	Templates []templateJSON `json:"templates"`
	Recipes   []recipeJSON   `json:"recipes"` // of Kuota
}

type recipeJSON struct {
	Name   string `json:"name"` // for the field recipe of a task
	Title  string `json:"title"`
	About  string `json:"about"`
	NotRun string `json:"notRun,omitempty"` // why no test of Kuota runs it
}

type templateJSON struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind,omitempty"` // absent if it cannot be read
	Created time.Time `json:"created"`
}

// TemplateRequest is a task that becomes a template.
type TemplateRequest struct {
	Name     string `json:"name"`     // of the template
	Manifest string `json:"manifest"` // of one task, after the ConfigMap with its script
}

// getTemplates answers GET /teams/{team}/templates.
func (h *Pages) getTemplates(c echo.Context) error {
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	found, err := h.Submit.Templates(c.Request().Context(), console.UserOf(c), t)
	if err != nil {
		return err
	}
	answer := templatesAnswer{Templates: []templateJSON{}}
	for _, one := range found {
		answer.Templates = append(answer.Templates, templateJSON{one.Name, one.Kind, one.Created.UTC()})
	}
	for _, r := range recipes.All {
		answer.Recipes = append(answer.Recipes, recipeJSON{r.Name, r.Title, r.About, r.NotRun})
	}
	return c.JSON(http.StatusOK, answer)
}

// getTemplate answers GET /teams/{team}/templates/{name}.
func (h *Pages) getTemplate(c echo.Context) error {
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	text, err := h.Submit.FromTemplate(c.Request().Context(), console.UserOf(c), t, c.Param("name"))
	if err != nil {
		return err
	}
	return c.String(http.StatusOK, text)
}

// postTemplate answers POST /teams/{team}/templates.
func (h *Pages) postTemplate(c echo.Context) error {
	var request TemplateRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	read, err := t.ReadText(request.Manifest, request.Name)
	if err != nil {
		return err
	}
	wrong := read.Wrong
	if read.Plan == nil && len(wrong) == 0 {
		wrong = append(slices.Clone(read.Changed), governance.FieldError{Path: "manifest", Message: "has no task"})
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "save template", Message: "Some values are not valid.", Fields: wrong}
	}
	return console.Done(c, h.Submit.SaveTemplate(c.Request().Context(), console.UserOf(c), t, request.Name, read.Manifest))
}

// removeTemplate answers DELETE /teams/{team}/templates/{name}.
func (h *Pages) removeTemplate(c echo.Context) error {
	t, err := h.submitTo(c)
	if err != nil {
		return err
	}
	return console.Done(c, h.Submit.DeleteTemplate(c.Request().Context(), console.UserOf(c), t, c.Param("name")))
}
