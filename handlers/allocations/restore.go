package allocations

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"

	"github.com/labstack/echo/v4"
)

// restoring fills the form with the version that ?restores= names. It still edits
// the existing allocation, or creates one.
func (h *Pages) restoring(c echo.Context, form allocationForm) (allocationForm, error) {
	from := c.QueryParam("restores")
	if from == "" {
		return form, nil
	}
	version, team, err := h.originOf(c, from)
	if err != nil {
		return form, err
	}
	old := v1alpha1.ComputeAllocation{Spec: *version.Allocation}
	old.Name = team
	filled := formOf(old)
	filled.earlier, filled.edits = filled.edits, nil
	filled.request, filled.Version, filled.Generation = form.request, form.Version, form.Generation
	filled.Restores, filled.Reason = from, forms.RestoresWords(version.Number)
	filled.changes(form.edits)
	return filled, nil
}

// remember reads the version that filled in the form, so that unchanged inputs save
// the same quantities. It keeps the typed values if that version is deleted.
func (h *Pages) remember(c echo.Context, form *allocationForm) error {
	if form.Restores == "" {
		return nil
	}
	version, team, err := h.originOf(c, form.Restores)
	if err != nil && governance.KindOf(err) == governance.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	old := v1alpha1.ComputeAllocation{Spec: *version.Allocation}
	old.Name = team
	form.earlier = edit(old)
	return nil
}

func (h *Pages) originOf(c echo.Context, from string) (revisions.Version, string, error) {
	team, number, _ := strings.Cut(from, ":")
	version, err := h.Versions.Version(c, revisions.AllocationOwner(team), number)
	if err == echo.ErrNotFound {
		err = &governance.Error{Kind: governance.NotFound, Op: "restore", Message: "This version does not exist."}
	}
	return version, team, err
}

// renderDeleted answers an edit of a team that was deleted meanwhile: who deleted it
// and when, if its versions have that, and the typed values, to create it again.
func (h *Pages) renderDeleted(c echo.Context, form allocationForm, state allocations.State) error {
	path, values := editURL(form.team), form.values()
	ctx, user := c.Request().Context(), console.UserOf(c)
	page := allocationviews.AllocationDeleted{Chrome: h.Chrome(c), Team: form.team, UpURL: urls.Policies, Action: urls.NewAllocation, InPlace: forms.InPlace(c)}
	page.Title, page.Active = "Team "+form.team+" was deleted", "policies"
	if may, err := h.May(ctx, user); err == nil {
		page.Create = may.Creates()
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
