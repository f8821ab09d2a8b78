package allocations

import (
	"net/http"
	"net/url"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// newAllocation answers GET /policies/allocations/new: an empty form, or the
// values in the address.
func (h *Pages) newAllocation(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, urls.NewAllocation)
		if values != nil {
			return h.takeNew(c, values, forms.ActionShow)
		}
		if err := h.mayDo(c, toCreate); err != nil {
			return err
		}
		form, err := h.restoring(c, emptyForm())
		if err != nil {
			return err
		}
		state, err := h.stateOf(c.Request().Context(), console.UserOf(c), &form)
		if err != nil {
			return err
		}
		if of := c.QueryParam("department"); of != "" {
			form.typed["department"] = of
		}
		form.Lost = lost
		return h.showForm(c, s, form, state)
	}
}

// takeNew answers an action on the form of a new allocation.
func (h *Pages) takeNew(c echo.Context, values url.Values, action string) error {
	form, allowed := readForm(ofTeam, values), h.mayDo(c, toCreate)
	if allowed == nil {
		allowed = h.remember(c, &form)
	}
	return h.takeForm(c, form, action, allowed)
}

// showForm shows a form with its initial values, or with the values that were typed
// before the session ended.
func (h *Pages) showForm(c echo.Context, s *web.Server, form allocationForm, state allocations.State) error {
	typed, redirected, err := forms.Draft(c, s, form.place().action)
	if redirected {
		return err
	}
	if typed != nil {
		edits, tree := form.edits, form.tree
		form = readForm(form.kind, typed)
		form.changes(edits)
		form.tree = tree
		if err := h.remember(c, &form); err != nil && !console.Unavailable(err) { // a save reads it again
			return err
		}
		form.do(typed.Get("action"), state.Types)
	} else {
		form.offerSaved(state.Types)
	}
	form.offer(state.Types)
	return h.renderForm(c, http.StatusOK, form, state, nil)
}

// Permissions that mayDo requires. Those of an admin of departments are of some teams only.
func toCreate(may allocations.Permissions) bool { return may.Creates() }

func toUpdate(may allocations.Permissions) bool { return may.Updates() }

func toDelete(may allocations.Permissions) bool { return may.Deletes() }

// toUpdateIn is toUpdate of the teams of a department.
func toUpdateIn(department string) func(allocations.Permissions) bool {
	return func(may allocations.Permissions) bool { return may.UpdatesIn(department) }
}

// mayDo returns 404 if the reader lacks a permission.
func (h *Pages) mayDo(c echo.Context, has func(allocations.Permissions) bool) error {
	may, err := h.May(c.Request().Context(), console.UserOf(c))
	if err == nil && !has(may) {
		return echo.ErrNotFound
	}
	return err
}
