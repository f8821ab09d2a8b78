package policy

import (
	"errors"
	"net/http"
	"net/url"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// editPolicy answers GET /policies/cluster/edit: the policy as it is saved, or the
// values in the address.
func (h *Pages) editPolicy(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, urls.EditPolicy)
		if values != nil {
			return h.takePolicyForm(c, values, forms.ActionShow)
		}
		state, err := h.editablePolicy(c)
		if err != nil {
			return err
		}
		if page, managed := managedPolicy(state); managed {
			return h.ShowManaged(c, page)
		}
		form, err := h.restoringPolicy(c, policyFormOf(state.Policy))
		if err != nil {
			return err
		}
		form.lost = lost
		if typed := s.Draft(c); typed != nil {
			typed.Set("resumed", "true")
			if address, fits := s.FormAddress(c, urls.EditPolicy, urls.EditPolicy, typed); fits {
				return c.Redirect(http.StatusSeeOther, address)
			}
			form = readPolicyForm(typed)
			form.do(typed.Get("action"))
		}
		return h.renderPolicy(c, http.StatusOK, form, state, nil)
	}
}

// reviewPolicy answers GET /policies/cluster/edit/review: what saving the values
// in the address would do.
func (h *Pages) reviewPolicy(c echo.Context) error {
	values, lost := h.TypedValues(c, urls.EditPolicy)
	if values == nil {
		return forms.RedirectWithoutForm(c, urls.EditPolicy, lost)
	}
	return h.takePolicyForm(c, values, "review")
}

// changePolicy answers POST /policies/cluster/edit: it reviews, saves, or does
// one of the form's smaller actions and shows the form again.
func (h *Pages) changePolicy(c echo.Context) error {
	values, err := forms.Posted(c)
	if err != nil {
		return err
	}
	return h.takePolicyForm(c, values, values.Get("action"))
}

// takePolicyForm does what somebody asked of the form.
func (h *Pages) takePolicyForm(c echo.Context, values url.Values, action string) error {
	form := readPolicyForm(values)
	goesOn := action == "review" || action == "save"
	form.submitted = form.submitted || goesOn
	form.do(action)

	state, err := h.editablePolicy(c)
	if page, managed := managedPolicy(state); managed && err == nil {
		return h.RefuseManaged(c, page, form.written())
	}
	var ours *governance.Error
	switch {
	case errors.As(err, &ours) && ours.Kind == governance.Unavailable:
		return h.renderPolicy(c, console.Statuses[ours.Kind], form, state, ours)
	case err != nil:
		return err
	case action == forms.ActionShow && form.refused != nil:
		return h.renderPolicy(c, console.Statuses[form.refused.Kind], form, state, form.refused)
	case (form.tried || goesOn) && len(form.wrong(state)) > 0:
		return h.renderPolicy(c, http.StatusUnprocessableEntity, form, state, nil)
	case !goesOn:
		return h.renderPolicy(c, http.StatusOK, form, state, nil)
	}
	if action == "review" {
		if redirected, err := h.RedirectToForm(c, forms.ReviewURL(urls.EditPolicy), urls.EditPolicy, form.encoded()); redirected {
			return err
		}
	}
	review, err := h.takePolicy(c, &form, &state, action)
	switch {
	case err == nil && action == "save":
		return c.Redirect(http.StatusSeeOther, "/policies?saved=policy")
	case err == nil:
		return h.renderPolicyReview(c, form, state, review)
	case !errors.As(err, &ours) || ours.Kind == governance.Internal:
		return err
	case state.Policy != nil && state.Policy.DeletionTimestamp != nil: // nothing to go on from
	case ours.Kind == governance.Conflict || ours.Kind == governance.Exists || ours.Kind == governance.NotFound:
		return h.renderPolicyConflict(c, form)
	}
	return h.renderPolicy(c, console.Statuses[ours.Kind], form, state, ours)
}

// takePolicy reviews or saves the policy, and does it again when only its status
// changed since it was read: that is no conflict between people.
func (h *Pages) takePolicy(c echo.Context, form *policyForm, state *policy.State, action string) (review policy.Review, err error) {
	ctx, user := c.Request().Context(), console.UserOf(c)
	for try := 1; ; try++ {
		if action == "review" {
			review, err = h.Policy.Review(ctx, user, form.policy(*state))
		} else {
			wanted := form.policy(*state)
			v1alpha1.SetReason(wanted, form.reason)
			err = h.Policy.Save(ctx, user, wanted)
		}
		if form.version == "" || governance.KindOf(err) != governance.Conflict || try == forms.ConflictTries {
			return review, err
		}
		now, findErr := h.editablePolicy(c)
		if findErr != nil || now.Policy == nil || generationOf(now.Policy) != form.generation || now.Policy.ResourceVersion == form.version {
			return review, err
		}
		*state, form.version = now, now.Policy.ResourceVersion
	}
}

// editablePolicy is the policy for somebody who may change it. It hides the
// form from everybody else.
func (h *Pages) editablePolicy(c echo.Context) (policy.State, error) {
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err == nil && !state.MayEdit {
		err = echo.ErrNotFound
	}
	return state, err
}

// renderPolicy shows the form with what was typed and what is wrong with it.
// refused is why a review or a save did not happen.
func (h *Pages) renderPolicy(c echo.Context, status int, form policyForm, state policy.State, refused *governance.Error) error {
	view := form.view(state, refused)
	for i, nodes := range h.poolNodes(c, form) {
		view.Pools[i].Nodes = nodes
	}
	view.Chrome = h.Chrome(c)
	view.Title, view.Active = policyTitle(form), "policies"
	view.Action, view.CancelURL = urls.EditPolicy, "/policies"
	view.TypedForm = views.TypedForm{Edited: form.typed || form.imported.Yes || form.restores != "", InPlace: forms.InPlace(c), Lost: form.lost}
	if web.WantsFragment(c) {
		return web.Render(c, status, views.PolicyFormBody(view))
	}
	values := form.encoded()
	forms.SetAnswer(values, status, refused)
	return h.AnswerForm(c, status, urls.EditPolicy, urls.EditPolicy, values, views.EditPolicy(view))
}

func policyTitle(form policyForm) string {
	if form.version == "" {
		return "Create cluster policy"
	}
	return "Edit cluster policy"
}

// renderPolicyReview shows what saving would do, and holds the form meanwhile.
func (h *Pages) renderPolicyReview(c echo.Context, form policyForm, state policy.State, review policy.Review) error {
	view := reviewOf(form, state, review)
	view.Chrome = h.Chrome(c)
	view.Title, view.Active = "Review cluster policy", "policies"
	view.Action, view.CancelURL, view.InPlace = urls.EditPolicy, "/policies", forms.InPlace(c)
	return web.Render(c, http.StatusOK, views.ReviewPolicy(view))
}

// renderPolicyConflict shows what is saved now beside what was typed, which goes on
// from there: the review that follows is of the policy as it is now.
func (h *Pages) renderPolicyConflict(c echo.Context, form policyForm) error {
	state, err := h.editablePolicy(c)
	if err != nil {
		return err
	}
	view := conflictOf(form, state.Policy)
	view.Chrome = h.Chrome(c)
	view.Title, view.Active = "Another person changed the cluster policy", "policies"
	view.Action, view.TheirURL = urls.EditPolicy, urls.EditPolicy
	if view.Deleted {
		view.TheirURL = "/policies"
	}
	view.InPlace = forms.InPlace(c)
	return h.AnswerForm(c, http.StatusConflict, forms.ReviewURL(urls.EditPolicy), urls.EditPolicy, form.encoded(), views.ConflictPolicy(view))
}
