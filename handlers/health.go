package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// healthz answers GET /healthz: the process lives.
func (h *Handlers) healthz(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readyz answers GET /readyz: pages have something to show. A cluster that
// goes away later does not make it unready, since its pages tell of that.
func (h *Handlers) readyz(c echo.Context) error {
	if h.Allocations.Ready() != nil {
		return c.String(http.StatusServiceUnavailable, "waiting for the cluster\n")
	}
	return c.String(http.StatusOK, "ok\n")
}
