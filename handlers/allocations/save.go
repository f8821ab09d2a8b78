package allocations

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// takeForm does what somebody asked of the form. allowed is why they may not;
// nil when they may.
func (h *Pages) takeForm(c echo.Context, form allocationForm, action string, allowed error) error {
	form.submitted = form.submitted || action == "save" || action == "review"
	if allowed != nil && !console.Unavailable(allowed) {
		return allowed
	}
	state, err := h.Allocations.State(c.Request().Context(), console.UserOf(c))
	form.do(action, state.Types)
	if err = errors.Join(allowed, err); err != nil {
		return h.refuseForm(c, form, state, err)
	}
	allocation, wrong := form.parse(state.Types.With(form.newPools()...))
	invalid := len(wrong) > 0 || len(form.missing()) > 0
	switch refused := form.refused; {
	case action == forms.ActionShow && refused != nil && refused.Kind == governance.NotFound && form.edits != nil:
		return h.renderDeleted(c, form, state)
	case action == forms.ActionShow && refused != nil:
		return h.renderForm(c, console.Statuses[refused.Kind], form, state, refused)
	case (form.tried || action == "save" || action == "review") && invalid:
		return h.renderForm(c, http.StatusUnprocessableEntity, form, state, nil)
	case action != "save" && action != "review":
		return h.renderForm(c, http.StatusOK, form, state, nil)
	}
	if action == "review" {
		path := form.place().action
		if redirected, err := h.RedirectToForm(c, forms.ReviewURL(path), path, form.values()); redirected {
			return err
		}
		var review allocations.Review
		err := h.again(c, &form, allocation, func(ctx context.Context, user governance.User) (err error) {
			review, err = h.Allocations.Review(ctx, user, allocation, form.newPools())
			return err
		})
		if err != nil {
			return h.refuseForm(c, form, state, err)
		}
		return h.renderReview(c, form, review)
	}
	err = h.again(c, &form, allocation, func(ctx context.Context, user governance.User) error {
		if form.edits != nil {
			return h.Allocations.Update(ctx, user, allocation, form.newPools())
		}
		return h.Allocations.Create(ctx, user, allocation, form.newPools(), form.request)
	})
	switch {
	case err != nil:
		return h.refuseForm(c, form, state, err)
	case form.edits != nil:
		return c.Redirect(http.StatusSeeOther, urls.Allocation(allocation.Name)+"?saved=true")
	}
	return c.Redirect(http.StatusSeeOther, urls.Policies+"?created="+url.QueryEscape(allocation.Name))
}

// again does something with an allocation that was read, and does it again
// when only its status changed since: that is no conflict between people.
func (h *Pages) again(c echo.Context, form *allocationForm, allocation *v1alpha1.ComputeAllocation, do func(context.Context, governance.User) error) error {
	ctx, user := c.Request().Context(), console.UserOf(c)
	for try := 1; ; try++ {
		err := do(ctx, user)
		if form.edits == nil || governance.KindOf(err) != governance.Conflict || try == forms.ConflictTries {
			return err
		}
		now, findErr := h.Allocations.Find(ctx, user, form.team)
		if findErr != nil {
			return err
		}
		form.edits = edit(now)
		if strconv.FormatInt(now.Generation, 10) != form.generation || now.ResourceVersion == form.version {
			return err
		}
		form.version, allocation.ResourceVersion = now.ResourceVersion, now.ResourceVersion
	}
}

// refuseForm answers with what was typed, and why it was not saved. What is
// ours to mend has a page of its own.
func (h *Pages) refuseForm(c echo.Context, form allocationForm, state allocations.State, err error) error {
	var ours *governance.Error
	switch {
	case !errors.As(err, &ours) || ours.Kind == governance.Internal:
		return err
	case ours.Kind == governance.NotFound && form.edits != nil:
		return h.renderDeleted(c, form, state)
	case ours.Kind == governance.Conflict && form.edits != nil && form.edits.allocation.DeletionTimestamp == nil:
		return h.renderConflict(c, form, state)
	}
	return h.renderForm(c, console.Statuses[ours.Kind], form, state, ours)
}

// renderForm shows the form with what was typed, its defaults, and what is
// wrong with it. refused is why a save did not happen; then the form is shown
// even while nothing can be said about the cluster.
func (h *Pages) renderForm(c echo.Context, status int, form allocationForm, state allocations.State, refused *governance.Error) error {
	view := form.view(state, h.Naming, refused)
	view.Chrome = h.Chrome(c)
	place := form.place()
	view.Title, view.Active = place.title, "policies"
	view.Action, view.CancelURL, view.UpLabel = place.action, place.up, place.upLabel
	view.TypedForm = views.TypedForm{Edited: form.typed || form.imported.Yes || form.restores != "", InPlace: forms.InPlace(c), Lost: form.lost}
	if web.WantsFragment(c) {
		return web.Render(c, status, views.AllocationFormBody(view))
	}
	values := form.values()
	forms.SetAnswer(values, status, refused)
	return h.AnswerForm(c, status, place.action, place.action, values, views.AllocationPage(view))
}

// formPlace is where a form stands among the pages.
type formPlace struct{ title, action, up, upLabel, save string }

func (f *allocationForm) place() formPlace {
	if f.edits == nil {
		return formPlace{"Create compute allocation", urls.NewAllocation, urls.Policies, "Policies", "Create allocation"}
	}
	return formPlace{"Edit " + f.team, editURL(f.team), urls.Allocation(f.team), f.team, "Save changes"}
}

// hidden is the form in hidden inputs, with who opened it.
func (f *allocationForm) hidden(c echo.Context) []views.HiddenField {
	values := f.values()
	values.Set("as", console.UserOf(c).Name)
	return forms.HiddenFields(values)
}
