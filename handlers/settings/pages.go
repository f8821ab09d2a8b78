package settings

import (
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/history/recorder"

	"kuota.dev/kuota/handlers/console"

	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the route of the settings.
type Pages struct {
	*console.Console
	Setup     Setup
	Recording func() recorder.State // how history is written; nil without history
	Leader    func() leader.State   // which replica runs the controllers
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Settings, h.Handler(h.settings))
}
