package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// healthz answers GET /healthz: the process is alive.
func (h *Handlers) healthz(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readyz answers GET /readyz: the caches have synced once. A cluster that becomes
// unreachable later does not make the console unready, because its pages report
// that.
func (h *Handlers) readyz(c echo.Context) error {
	if h.Allocations.Ready() != nil {
		return c.String(http.StatusServiceUnavailable, "waiting for the cluster\n")
	}
	return c.String(http.StatusOK, "ok\n")
}
