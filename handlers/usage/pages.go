package usage

import (
	"net/http"

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
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/usage", Summary: "Report who used what, and what it cost", Answer: []reportJSON{}, Handler: h.Within(h.usageJSON), Query: []web.Parameter{
		{Name: "team", About: "of this team"}, {Name: "department", About: "of the teams in this department and below it"}, {Name: "pool", About: "in this pool"}, {Name: "resource", About: "in this resource, such as cpu"},
		{Name: "from", About: "first day; default the first of the month"}, {Name: "to", About: "last day; default today"}, {Name: "by", About: "periods: day, the default, week or month"}, {Name: "zone", About: "time zone of the days; default UTC"},
	}})
}
