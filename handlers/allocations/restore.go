package allocations

import (
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/handlers/forms"

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
