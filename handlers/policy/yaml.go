package policy

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"

	"github.com/labstack/echo/v4"
)

// policyYAML answers GET /policies/cluster/yaml: the policy as a file, for who
// sees it.
func (h *Pages) policyYAML(c echo.Context) error {
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err == nil && state.Policy == nil {
		err = &governance.Error{Kind: governance.NotFound, Op: "read policy", Message: "There is no cluster policy. Create one on the policies page."}
	}
	if err != nil {
		return err
	}
	return console.YAMLFile(c, "cluster-policy", manifest.PolicyYAML(state.Policy))
}
