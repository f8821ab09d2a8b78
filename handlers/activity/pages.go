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
	s.Page(urls.Activity, h.Within(h.activity))
	s.Page(urls.ActivityCSV, h.Within(h.activityCSV))
	s.Page(urls.ActivityJSON, h.Within(h.activityJSON))
}
