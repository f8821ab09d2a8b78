package allocations

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// takeForm answers an action on a form. denied is the error of the permission
// check; the form is shown while permissions cannot be checked.
func (h *Pages) takeForm(c echo.Context, form allocationForm, action string, denied error) error {
	form.Submitted = form.Submitted || forms.Submits(action)
	if c.Request().Method == http.MethodPost && forms.Submits(action) {
		form.asked = "" // the address of a review says why it was asked
	}
	if denied != nil && !console.Unavailable(denied) {
		return denied
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	state, err := h.stateOf(ctx, user, &form)
	form.do(action, state.Types)
	if err = errors.Join(denied, err); err != nil {
		refused := forms.Refusal(err)
		if refused == nil {
			return err
		}
		return h.refuseForm(c, form, state, refused)
	}
	if r := form.Refused; action == forms.ActionShow && r != nil && r.Kind == governance.NotFound && form.edits != nil && form.kind == ofTeam {
		return h.renderDeleted(c, form, state)
	}
	allocation, wrong := form.parse(state.Types.With(form.newPools()...))
	var review allocations.Review
	var departmentReview departments.Review
	unchanged := len(wrong) == 0 && form.unchanged(allocation)
	return h.Run(c, action, forms.Flow{
		Form: &form.Form, Path: form.place().action, Values: form.values,
		Valid: func() bool {
			return len(wrong) == 0 && len(form.missing()) == 0 && len(form.byCRD(allocation)) == 0 && !form.outside(allocation)
		},
		Show: func(status int, refused *governance.Error) error {
			return h.renderForm(c, status, form, state, refused)
		},
		Do: func() (err error) {
			allocation.ResourceVersion = form.Version
			if form.kind == ofDepartment {
				departmentReview, err = h.saveDepartment(ctx, user, &form, allocation, action)
				return err
			}
			switch {
			case action == forms.ActionReview || action == forms.ActionApply:
				review, err = h.Allocations.Review(ctx, user, state, allocation, form.newPools())
				if err != nil || action == forms.ActionReview {
					return err
				}
				if form.asked = h.ask(ctx, user, &form, allocation, review); form.asked != "" {
					return nil
				}
			}
			switch {
			case form.edits != nil:
				return h.Allocations.Update(ctx, user, state, allocation, form.newPools())
			}
			return h.Allocations.Create(ctx, user, state, allocation, form.newPools(), form.request)
		},
		Reread: h.reread(c, &form),
		Done: func() error {
			switch {
			case form.asked == askedChanged:
				return h.renderForm(c, http.StatusOK, form, state, nil)
			case form.asked != "" && action == forms.ActionApply:
				address := form.place().action
				if redirected, err := h.RedirectToForm(c, forms.ReviewURL(address), address, form.values()); redirected {
					return err
				}
				if form.kind == ofDepartment {
					return h.renderDepartmentReview(c, form, allocation, departmentReview)
				}
				fallthrough
			case action == forms.ActionReview && form.kind == ofDepartment:
				return h.renderDepartmentReview(c, form, allocation, departmentReview)
			case action == forms.ActionReview:
				return h.renderReview(c, form, state, allocation, review)
			case form.kind == ofDepartment:
				return c.Redirect(http.StatusSeeOther, urls.With(urls.Department(allocation.Name), nil, "done", form.done(unchanged)))
			case unchanged:
				return c.Redirect(http.StatusSeeOther, urls.Allocation(allocation.Name)+console.Unchanged)
			case form.edits != nil:
				return c.Redirect(http.StatusSeeOther, urls.Allocation(allocation.Name)+"?saved=true")
			}
			return c.Redirect(http.StatusSeeOther, urls.Policies+"?created="+url.QueryEscape(allocation.Name))
		},
		Refuse: func(refused *governance.Error) error { return h.refuseForm(c, form, state, refused) },
	})
}

// reread reads the allocation that form changes into form.edits.
func (h *Pages) reread(c echo.Context, form *allocationForm) forms.Reread {
	return func() (version, generation string, ok bool) {
		if form.edits == nil {
			return "", "", false
		}
		if form.kind == ofDepartment {
			return h.rereadDepartment(c, form)
		}
		now, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), form.team)
		if err != nil {
			return "", "", false
		}
		form.edits = edit(now)
		return now.ResourceVersion, strconv.FormatInt(now.Generation, 10), true
	}
}

// refuseForm answers a review or a save that failed, with the typed values.
func (h *Pages) refuseForm(c echo.Context, form allocationForm, state allocations.State, refused *governance.Error) error {
	switch {
	case refused.Kind == governance.NotFound && form.edits != nil && form.kind == ofTeam:
		return h.renderDeleted(c, form, state)
	case refused.Kind == governance.Conflict && form.edits != nil && form.edits.allocation.DeletionTimestamp == nil:
		return h.renderConflict(c, form, state)
	}
	return h.renderForm(c, console.Statuses[refused.Kind], form, state, refused)
}

// renderForm shows the form with what was typed, its defaults, and what is
// wrong with it. refused is why a save did not happen; then the form is shown
// even while nothing can be said about the cluster.
func (h *Pages) renderForm(c echo.Context, status int, form allocationForm, state allocations.State, refused *governance.Error) error {
	view, wanted := form.view(state, h.People.Names(), h.Naming, refused)
	view.Chrome = h.Chrome(c)
	place := form.place()
	view.Title, view.Active = place.title, place.active
	view.Action, view.CancelURL, view.UpLabel = place.action, place.up, place.upLabel
	view.TypedForm, view.Save = form.View(c), place.save
	if refused != nil {
		view.Effect = allocationviews.Effect{Text: "Nothing is saved yet: see above."}
	} else {
		h.simulate(c.Request().Context(), console.UserOf(c), &form, wanted, &view.Effect)
		view.Asked, view.Effect.Changed = form.asked, form.asked == askedChanged
		if changed, merged := strings.CutPrefix(form.asked, askedMerged); merged {
			view.Merged = cmp.Or(changed, "nothing that has an effect")
		}
	}
	if web.WantsFragment(c) {
		return web.Render(c, status, allocationviews.AllocationFormBody(view))
	}
	values := form.values()
	forms.SetAnswer(values, status, refused)
	return h.AnswerForm(c, status, place.action, place.action, values, allocationviews.AllocationPage(view))
}

// formPlace is the address of a form and of the pages before and after it.
type formPlace struct{ what, active, title, action, up, upLabel, save string }

func (f *allocationForm) place() formPlace {
	const team, department = "this allocation", "this department"
	switch {
	case f.kind == ofDepartment && f.edits == nil:
		return formPlace{department, "teams", "Create department", urls.NewDepartment, urls.Teams, "Teams", "Create department"}
	case f.kind == ofDepartment:
		return formPlace{department, "teams", "Edit " + f.team, urls.EditDepartment(f.team), urls.Department(f.team), f.team, "Save changes"}
	case f.edits == nil:
		return formPlace{team, "policies", "Create compute allocation", urls.NewAllocation, urls.Policies, "Policies", "Create allocation"}
	}
	return formPlace{team, "policies", "Edit " + f.team, editURL(f.team), urls.Allocation(f.team), f.team, "Save changes"}
}

// hidden is the form in hidden inputs, with who opened it.
func (f *allocationForm) hidden(c echo.Context) []views.HiddenField {
	values := f.values()
	values.Set("as", console.UserOf(c).Name)
	return forms.HiddenFields(values)
}
