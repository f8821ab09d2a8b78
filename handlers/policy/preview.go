package policy

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// variant returns the preview of saving a policy.
func (h *Pages) variant(user governance.User, wanted *v1alpha1.ClusterPolicy) previews.Variant {
	return previews.Variant{Key: "save", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Policy(ctx, user, wanted)
	}}
}

// previewReview answers the stream of the review: the preview of the values in its
// address.
func (h *Pages) previewReview(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, _ := h.TypedValues(c, urls.EditPolicy)
		if values == nil {
			return echo.ErrNotFound
		}
		state, err := h.editablePolicy(c)
		if err != nil {
			return err
		}
		form := readPolicyForm(values)
		form.do(forms.ActionReview)
		return h.Previews.Stream(s, c, h.variant(console.UserOf(c), form.policy(state)))
	}
}
