package usage

import (
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of usage.
type Pages struct {
	*console.Console
	Policy  console.Policy  // has the prices
	History console.History // nil for none
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Usage, h.Within(h.usage))
	s.Page(urls.UsageCSV, h.Within(h.usageCSV))
	s.Page(urls.UsageJSON, h.Within(h.usageJSON))
}
