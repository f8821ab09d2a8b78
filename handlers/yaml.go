package handlers

import (
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/manifest"

	"github.com/labstack/echo/v4"
)

const policyYAMLURL = "/policies/cluster/yaml"

// allocationYAML answers GET /policies/allocations/{name}/yaml: an allocation
// as a file.
func (h *Handlers) allocationYAML(c echo.Context) error {
	a, err := h.Allocations.Find(c.Request().Context(), userOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	return yamlFile(c, a.Name, manifest.Allocation(&a))
}

// policyYAML answers GET /policies/cluster/yaml: the policy as a file, for who
// sees it.
func (h *Handlers) policyYAML(c echo.Context) error {
	state, err := h.Policy.State(c.Request().Context(), userOf(c))
	if err == nil && state.Policy == nil {
		err = &governance.Error{Kind: governance.NotFound, Op: "read policy", Message: "There is no cluster policy. Create one on the policies page."}
	}
	if err != nil {
		return err
	}
	return yamlFile(c, "cluster-policy", manifest.Policy(state.Policy))
}

// yamlFile answers with a file that browsers save. name is a team's or ours.
func yamlFile(c echo.Context, name, text string) error {
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.yaml"`)
	return c.Blob(http.StatusOK, "application/yaml; charset=utf-8", []byte(text))
}
