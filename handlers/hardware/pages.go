package hardware

import (
	"kuota.dev/kuota/handlers/console"

	"kuota.dev/kuota/web"
)

// Pages renders how busy the hardware is: a section of the dashboard, and its CSV
// file.
type Pages struct {
	*console.Console
	Hardware  Utilization // nil without Prometheus
	PodOwners PodOwners
	IdleBelow float64 // utilization, 0 to 1, that an idle accelerator never reached
	idle      idleTasks
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(hardwareCSVURL, h.Within(h.hardwareCSV))
}
