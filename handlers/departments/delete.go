package departments

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// deletable returns the state, and the department of the address if the reader may delete it.
func (h *Pages) deletable(c echo.Context) (departments.State, *v1alpha1.Department, error) {
	state, err := h.Departments.State(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return state, nil, err
	}
	d := state.Find(c.Param("name"))
	if d == nil || !state.MayChange(d.Name) {
		return state, nil, departments.Unknown(c.Param("name"))
	}
	return state, d, nil
}

// confirmDelete answers GET /departments/{name}/delete.
func (h *Pages) confirmDelete(c echo.Context) error {
	state, d, err := h.deletable(c)
	if err != nil {
		return err
	}
	if page, managed := managedBy(d); managed {
		return h.ShowManaged(c, page)
	}
	values, _ := h.TypedValues(c, urls.DeleteDepartment(d.Name))
	status, refused := forms.AnswerOf(values)
	return h.renderDelete(c, status, state, d, values, refused)
}

func managedBy(d *v1alpha1.Department) (page views.Managed, managed bool) {
	m, managed := gitops.ManagerOf(d)
	if !managed {
		return page, false
	}
	page = views.Managed{UpLabel: d.Name, UpURL: urls.Department(d.Name), Sentence: m.Message("Department " + d.Name), Text: manifest.DepartmentYAML(d)}
	page.Title = "Delete " + d.Name
	return page, true
}

// delete answers POST /departments/{name}/delete.
func (h *Pages) delete(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	state, d, err := h.deletable(c)
	if err != nil {
		return err
	}
	if page, managed := managedBy(d); managed {
		return h.RefuseManaged(c, page, "")
	}
	if values.Get("confirm") != d.Name {
		return h.renderDelete(c, http.StatusUnprocessableEntity, state, d, values, &governance.Error{
			Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "confirm", Message: "type " + d.Name + ", to the letter"}},
		})
	}
	err = h.Departments.Delete(c.Request().Context(), console.UserOf(c), state, d.Name, values.Get("version"), forms.ReasonText(values.Get("reason")))
	if refused := forms.Refusal(err); refused != nil && refused.Kind != governance.NotFound {
		return h.renderDelete(c, console.Statuses[refused.Kind], state, d, values, refused)
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, urls.With(urls.Teams, nil, "deleted", d.Name))
}

// renderDelete shows what deleting does, with the typed values. refused is the error of a
// deletion that failed.
func (h *Pages) renderDelete(c echo.Context, status int, state departments.State, d *v1alpha1.Department, typed url.Values, refused *governance.Error) error {
	path := urls.DeleteDepartment(d.Name)
	values := url.Values{"confirm": {typed.Get("confirm")}, "reason": {forms.ReasonText(typed.Get("reason"))}}
	forms.SetAnswer(values, status, refused)
	if redirected, err := h.RedirectToForm(c, path, path, values); redirected {
		return err
	}
	page := views.ActionPage{
		Chrome: h.Chrome(c), UpLabel: quota.Title(d), UpURL: urls.Department(d.Name), Action: path, InPlace: forms.InPlace(c),
		Fields: []views.HiddenField{{Name: "version", Value: d.ResourceVersion}, {Name: "generation", Value: strconv.FormatInt(d.Generation, 10)}},
		Type:   "Type " + d.Name + " to confirm", Confirm: &views.TextField{Value: values.Get("confirm")}, Submit: "Delete department", Danger: true, Failure: forms.Failure(refused),
	}
	page.Title, page.Active = "Delete "+d.Name, "teams"
	reason := forms.ReasonField(values.Get("reason"), "everyone who sees the activity")
	page.Reason = &reason
	page.Effects = []string{"Its quota is no longer reserved: it is lent to all teams, or is left for " + aboveOf(state, d) + ".", "Its members lose the roles that they have by it. No task is stopped."}
	if left := state.NotEmpty(d.Name); left != "" {
		page.Obstacle = "Department " + d.Name + " has " + left + ". Move or delete them first: each keeps its quota where it is moved to."
		for _, team := range state.Tree.Teams(d.Name) {
			if len(page.Alternatives) < 5 {
				page.Alternatives = append(page.Alternatives, views.ActionButton{Label: "Edit team " + team.Name, URL: urls.Allocation(team.Name) + "/edit"})
			}
		}
		for _, child := range state.Tree.Children(d.Name) {
			if len(page.Alternatives) < 5 {
				page.Alternatives = append(page.Alternatives, views.ActionButton{Label: "Edit department " + child, URL: urls.EditDepartment(child)})
			}
		}
	} else {
		page.Preview = h.Previews.At(&page.Chrome, path+"/events", h.deleteVariant(console.UserOf(c), d.Name))
	}
	if refused != nil {
		for _, f := range refused.Fields {
			if f.Path == "confirm" {
				page.Confirm.Error = format.Sentence(f.Message)
			}
		}
	}
	return web.Render(c, status, views.Action(page))
}

// aboveOf names what is above a department.
func aboveOf(state departments.State, d *v1alpha1.Department) string {
	if parent := state.Tree.Find(d.Spec.Parent); parent != nil {
		return quota.Title(parent)
	}
	return "other departments and teams"
}

// saveVariant returns the preview of saving a department.
func (h *Pages) saveVariant(user governance.User, wanted *v1alpha1.Department) previews.Variant {
	return previews.Variant{Key: "save", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Department(ctx, user, wanted)
	}}
}

func (h *Pages) deleteVariant(user governance.User, name string) previews.Variant {
	return previews.Variant{Key: "delete", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.DepartmentDeletion(ctx, user, name)
	}}
}

// previewDelete answers the stream of the page that deletes a department.
func (h *Pages) previewDelete(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		_, d, err := h.deletable(c)
		if err != nil {
			return err
		}
		return h.Previews.Stream(s, c, h.deleteVariant(console.UserOf(c), d.Name))
	}
}
