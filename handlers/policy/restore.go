package policy

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/handlers/forms"

	"github.com/labstack/echo/v4"
)

// restoringPolicy fills the form with the version that ?restores= names.
func (h *Pages) restoringPolicy(c echo.Context, form policyForm) (policyForm, error) {
	from := c.QueryParam("restores")
	if from == "" {
		return form, nil
	}
	version, err := h.Versions.Version(c, revisions.PolicyOwner(), from)
	if err != nil {
		return form, err
	}
	filled := policyFormOf(&v1alpha1.ClusterPolicy{Spec: *version.Policy})
	filled.Version, filled.Generation = form.Version, form.Generation
	filled.Restores, filled.Reason = from, forms.RestoresWords(version.Number)
	return filled, nil
}
