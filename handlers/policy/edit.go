package policy

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"
	policyviews "kuota.dev/kuota/views/policy"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// form answers the page of one part of the policy.
type form struct {
	*Pages
	*part
}

func (h *form) register(s *web.Server) {
	s.Form(h.path, h.Handler(h.Writing(h.edit(s))), h.Handler(h.Writing(forms.Post(h.take))))
	s.Page(forms.ReviewURL(h.path), h.Handler(h.Writing(h.Review(func(echo.Context) string { return h.path }, h.take))))
	s.Events(forms.ReviewURL(h.path)+"/events", h.Handler(h.previewReview(s)))
}

// edit answers GET of a form: the policy as it is saved, or the values in the address.
func (h *form) edit(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, h.path)
		if values != nil {
			return h.take(c, values, forms.ActionShow)
		}
		state, err := h.editablePolicy(c)
		if err != nil {
			return err
		}
		if page, managed := managedPolicy(h.part, state); managed {
			return h.ShowManaged(c, page)
		}
		form, err := h.restoringPolicy(c, state, policyFormOf(state.Policy, h.part))
		if err != nil {
			return err
		}
		form.Lost = lost
		typed, redirected, err := forms.Draft(c, s, h.path)
		if redirected {
			return err
		}
		if typed != nil {
			form = readPolicyForm(h.part, typed)
			form.do(typed.Get("action"))
		}
		return h.renderPolicy(c, http.StatusOK, form, state, nil)
	}
}

// take answers an action on the form.
func (h *form) take(c echo.Context, values url.Values, action string) error {
	form := readPolicyForm(h.part, values)
	form.Submitted = form.Submitted || forms.Submits(action)
	form.do(action)

	state, err := h.editablePolicy(c)
	if page, managed := managedPolicy(h.part, state); managed && err == nil {
		return h.RefuseManaged(c, page, form.written(state))
	}
	if err == nil && state.Policy == nil && !form.has(clusterPart) {
		return h.renderPolicy(c, http.StatusOK, form, state, nil)
	}
	show := func(status int, refused *governance.Error) error {
		return h.renderPolicy(c, status, form, state, refused)
	}
	if refused := forms.Refusal(err); refused != nil && refused.Kind == governance.Unavailable {
		return show(console.Statuses[refused.Kind], refused)
	}
	if err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	var review policy.Review
	asks := action == forms.ActionReview
	return h.Run(c, action, forms.Flow{
		Form: &form.Form, Path: h.path, Values: form.values,
		Valid: func() bool { return len(form.wrong(state)) == 0 },
		Show:  show,
		Do: func() (err error) {
			wanted := form.policy(state)
			if action != forms.ActionSave {
				review, err = h.Policy.Review(ctx, user, wanted)
				if asks = asks || err == nil && h.asks(ctx, user, &form, wanted, review); err != nil || asks {
					return err
				}
			}
			v1alpha1.SetReason(wanted, form.Reason)
			return h.Policy.Save(ctx, user, wanted)
		},
		Reread: func() (version, generation string, ok bool) {
			if form.Version == "" {
				return "", "", false
			}
			now, err := h.editablePolicy(c)
			if err != nil || now.Policy == nil {
				return "", "", false
			}
			if generation = generationOf(now.Policy, form.parts); generation == form.Generation {
				state = now
			}
			return now.Policy.ResourceVersion, generation, true
		},
		Done: func() error {
			switch {
			case asks && action == forms.ActionApply:
				if redirected, err := h.RedirectToForm(c, forms.ReviewURL(h.path), h.path, form.values()); redirected {
					return err
				}
				fallthrough
			case asks:
				return h.renderPolicyReview(c, form, state, review)
			case unchanged(state, form.policy(state)):
				return c.Redirect(http.StatusSeeOther, h.up+console.Unchanged)
			}
			return c.Redirect(http.StatusSeeOther, h.up+"?saved="+h.name)
		},
		Refuse: func(refused *governance.Error) error {
			deleting := state.Policy != nil && state.Policy.DeletionTimestamp != nil // no version to continue from
			switch refused.Kind {
			case governance.Conflict, governance.Exists, governance.NotFound:
				if !deleting {
					return h.renderPolicyConflict(c, form)
				}
			}
			return show(console.Statuses[refused.Kind], refused)
		},
	})
}

// asks reports whether saving has to be confirmed: it restarts Kueue, leaves a step to the
// admin, deletes a class that tasks use, interrupts running tasks, or may do so.
func (h *form) asks(ctx context.Context, user governance.User, form *policyForm, wanted *v1alpha1.ClusterPolicy, review policy.Review) bool {
	if review.Unknown != "" || review.Restart || review.Patch != "" || slices.ContainsFunc(review.Classes, policy.ClassChange.InUse) {
		return true
	}
	if !form.simulated() {
		return false
	}
	if h.Previews.Backend == nil {
		return true
	}
	variant, preview := h.Previews.Once(ctx, h.variant(user, wanted))
	return variant.State != views.PreviewReady || previews.Interrupts(preview)
}

// simulated reports whether saving the form can have an effect on tasks.
func (f *policyForm) simulated() bool { return f.has(clusterPart) || f.has(poolsPart) }

// unchanged reports whether saving wanted changes nothing.
func unchanged(state policy.State, wanted *v1alpha1.ClusterPolicy) bool {
	return state.Policy != nil && len(describe.PolicyChanges(&state.Policy.Spec, &wanted.Spec)) == 0
}

// editablePolicy returns the policy, and 404 for readers who may not change it.
func (h *Pages) editablePolicy(c echo.Context) (policy.State, error) {
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	switch {
	case err != nil:
		return state, err
	case !state.MayEdit:
		return state, echo.ErrNotFound
	}
	return state, h.Policy.CountTasks(c.Request().Context(), &state)
}

// renderPolicy shows the form with the typed values and their errors. refused is the
// error of a review or a save that failed.
func (h *Pages) renderPolicy(c echo.Context, status int, form policyForm, state policy.State, refused *governance.Error) error {
	page := form.parts[0]
	view := form.view(state, refused, h.present(c, form))
	view.Chrome = h.Chrome(c)
	view.Title, view.Active = page.title, page.active
	if form.Version == "" && form.has(clusterPart) {
		view.Title = "Create cluster policy"
	}
	view.TypedForm = form.View(c)
	if web.WantsFragment(c) {
		return web.Render(c, status, policyviews.PolicyFormBody(view))
	}
	values := form.values()
	forms.SetAnswer(values, status, refused)
	return h.AnswerForm(c, status, page.path, page.path, values, policyviews.EditPolicy(view))
}

// renderPolicyReview shows the effects of saving, with the form in hidden inputs.
func (h *Pages) renderPolicyReview(c echo.Context, form policyForm, state policy.State, review policy.Review) error {
	view := reviewOf(form, state, review)
	view.Chrome = h.Chrome(c)
	page := form.parts[0]
	view.Title, view.Active = "Review cluster policy", page.active
	view.Action, view.CancelURL, view.InPlace = page.path, page.up, forms.InPlace(c)
	if !view.Unchanged && form.simulated() {
		view.Preview = h.Previews.For(c, &view.Chrome, h.variant(console.UserOf(c), form.policy(state)))
	}
	return web.Render(c, http.StatusOK, policyviews.ReviewPolicy(view))
}

// renderPolicyConflict shows the saved policy beside the typed values. The review
// that follows changes the version that is saved now.
func (h *Pages) renderPolicyConflict(c echo.Context, form policyForm) error {
	state, err := h.editablePolicy(c)
	if err != nil {
		return err
	}
	of := form.parts[0]
	page := views.Conflict{
		Chrome: h.Chrome(c), What: "the cluster policy", Deleted: state.Policy == nil,
		Action: of.path, UpURL: of.up, UpLabel: of.upLabel, TheirsURL: of.path, InPlace: forms.InPlace(c),
	}
	page.Title, page.Active = "Another person changed the cluster policy", of.active
	typed := form.values()
	mine := form.policy(state).Spec
	if form.Version, form.Generation = "", ""; page.Deleted {
		page.TheirsURL = urls.Policies
	} else {
		form.Version, form.Generation = state.Policy.ResourceVersion, generationOf(state.Policy, form.parts)
		page.Lines = versions.ValueChanges(describe.PolicyChanges(&state.Policy.Spec, &mine))
	}
	form.Submitted, form.Resumed = true, false
	values := form.values()
	values.Set("as", console.UserOf(c).Name)
	page.Fields = forms.HiddenFields(values)
	return h.AnswerForm(c, http.StatusConflict, forms.ReviewURL(of.path), of.path, typed, views.ConflictPage(page))
}
