package allocations

import (
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"

	"github.com/labstack/echo/v4"
)

// allocationYAML answers GET /policies/allocations/{name}/yaml: an allocation
// as a file.
func (h *Pages) allocationYAML(c echo.Context) error {
	a, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	return console.YAMLFile(c, a.Name, manifest.AllocationYAML(&a))
}
