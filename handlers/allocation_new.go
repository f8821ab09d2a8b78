package handlers

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// newAllocation answers GET /policies/allocations/new: an empty form, or what
// was typed before its sender had to sign in again.
func (h *Handlers) newAllocation(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		if err := h.mayCreate(c); err != nil {
			return err
		}
		form := allocationForm{
			request: rand.Text(), weight: "0", rows: []formRow{{}},
			strategy: "LendAndBorrow", percent: "50", preemption: "LowerPriority",
		}
		if typed := s.Draft(c); typed != nil {
			form = readAllocationForm(typed)
			form.do(typed.Get("action"))
			form.resumed = true
		}
		return h.renderAllocation(c, http.StatusOK, form, nil)
	}
}

// createAllocation answers POST /policies/allocations/new: it saves, or does
// one of the form's smaller actions and shows the form again.
func (h *Handlers) createAllocation(c echo.Context) error {
	values, err := web.FormValues(c)
	if err != nil {
		return err
	}
	form := readAllocationForm(values)
	action := values.Get("action")
	form.submitted = form.submitted || action == "save"
	form.do(action)

	var ours *governance.Error
	err = h.mayCreate(c)
	switch {
	case errors.As(err, &ours) && ours.Kind == governance.Unavailable:
		return h.renderAllocation(c, statuses[ours.Kind], form, ours)
	case err != nil:
		return err
	case action != "save":
		return h.renderAllocation(c, http.StatusOK, form, nil)
	}
	allocation, wrong := form.parse()
	wrong = append(wrong, form.missing()...)
	if len(wrong) > 0 {
		return h.renderAllocation(c, http.StatusUnprocessableEntity, form, nil)
	}
	err = h.Allocations.Create(c.Request().Context(), userOf(c), allocation, form.request)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, "/policies?created="+url.QueryEscape(allocation.Name))
	}
	if errors.As(err, &ours) && ours.Kind != governance.Internal {
		return h.renderAllocation(c, statuses[ours.Kind], form, ours)
	}
	return err
}

// renderAllocation shows the form with what was typed, its defaults, and what
// is wrong with it. refused is why a save did not happen; then the form is
// shown even while nothing can be said about the cluster.
func (h *Handlers) renderAllocation(c echo.Context, status int, form allocationForm, refused *governance.Error) error {
	state, err := h.Allocations.State(c.Request().Context(), userOf(c))
	if err != nil && refused == nil {
		return err
	}
	view := form.view(state, h.Naming, refused)
	view.Chrome = h.Chrome(c)
	view.Title, view.Active = "Create compute allocation", "policies"
	view.Action, view.CancelURL = newAllocationURL, "/policies"
	if web.WantsFragment(c) {
		return web.Render(c, status, views.AllocationFormBody(view))
	}
	return web.Render(c, status, views.NewAllocation(view))
}

// mayCreate hides the form from those who could not save it.
func (h *Handlers) mayCreate(c echo.Context) error {
	may, err := h.Allocations.MayCreate(c.Request().Context(), userOf(c))
	if err == nil && !may {
		return echo.ErrNotFound
	}
	return err
}
