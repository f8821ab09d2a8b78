package dashboard

import (
	"kuota.dev/kuota/handlers/hardware"

	"kuota.dev/kuota/handlers/classstats"

	"kuota.dev/kuota/handlers/console"

	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of the dashboard.
type Pages struct {
	*console.Console
	History       console.History // nil for none
	Classes       *classstats.Stats
	HardwarePages *hardware.Pages
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Dashboard, h.Within(h.dashboard))
	s.Events(urls.DashboardEvents, h.dashboardEvents(s))
	s.Page(urls.CapacityCSV, h.Within(h.capacityCSV))
}
