package allocations

import (
	"crypto/rand"
	"net/http"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"

	"github.com/labstack/echo/v4"
)

// renderDeleted answers an edit of a team that was deleted meanwhile: who deleted it
// and when, if its versions have that, and the typed values, to create it again.
func (h *Pages) renderDeleted(c echo.Context, form allocationForm, state allocations.State) error {
	path, values := editURL(form.team), form.values()
	ctx, user := c.Request().Context(), console.UserOf(c)
	page := allocationviews.AllocationDeleted{Chrome: h.Chrome(c), Team: form.team, UpURL: urls.Policies, Action: urls.NewAllocation, InPlace: forms.InPlace(c)}
	page.Title, page.Active = "Team "+form.team+" was deleted", "policies"
	if may, err := h.May(ctx, user); err == nil {
		page.Create = may.Create
	}
	if history, err := h.Revisions.History(ctx, user, revisions.AllocationOwner(form.team)); err == nil && len(history) > 0 {
		page.VersionsURL = urls.AllocationVersions(form.team)
		if newest := history[0]; newest.IsDeletion() {
			page.By, page.When, page.Reason = newest.By, newest.At.UTC().Format(time.RFC3339), newest.Reason
		}
	}
	typed, _ := form.parse(state.Types.With(form.newPools()...))
	for _, c := range describe.AllocationChanges(nil, &typed.Spec) {
		page.Typed = append(page.Typed, views.ValueLine{Name: c.Path, Value: c.After})
	}
	// The team may still be listed when the address is opened.
	forms.SetAnswer(values, http.StatusNotFound, &governance.Error{Kind: governance.NotFound, Message: page.Title})
	// A new team of that name keeps the namespace that the deleted one left.
	form.edits, form.Version, form.Generation, form.request, form.Submitted = nil, "", "", rand.Text(), false
	page.Fields = form.hidden(c)
	return h.AnswerForm(c, http.StatusNotFound, path, path, values, allocationviews.AllocationDeletedPage(page))
}
