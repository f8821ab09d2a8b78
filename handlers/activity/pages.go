package activity

import (
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of activity.
type Pages struct {
	*console.Console
	History console.History // nil for none
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Activity, h.Handler(h.activity))
	s.Page(urls.ActivityCSV, h.Handler(h.activityCSV))
	s.Page(urls.ActivityJSON, h.Handler(h.activityJSON))
}
