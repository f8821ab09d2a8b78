package instances

import (
	"kuota.dev/kuota/handlers/console"

	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of pools and nodes.
type Pages struct{ *console.Console }

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Instances, h.Within(h.instances))
	s.Events(urls.Instances+"/events", h.instancesEvents(s))
	s.Page(urls.InstancesCSV, h.Within(h.instancesCSV))
}
