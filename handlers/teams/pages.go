package teams

import (
	"kuota.dev/kuota/handlers/classstats"

	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/hardware"

	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of teams: their list, the page of one, and the pages where its
// members submit tasks.
type Pages struct {
	*console.Console
	Submit  Submit
	History console.History // nil for none
	Classes *classstats.Stats
	Advice  console.Listener // of what simulations add to the pages
	// Hardware has the idle tasks, and Stops which of them a user can stop; nil for none.
	Hardware *hardware.Pages
	Stops    Stops
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Teams, h.Within(h.teams))
	s.Events(urls.TeamsEvents, h.teamsEvents(s))
	s.Page(urls.TeamsCSV, h.Within(h.teamsCSV))
	s.Page(urls.TeamsJSON, h.Within(h.teamsJSON))
	s.Events(urls.TeamPrefix+":team/events", h.Handler(h.teamEvents(s)))
	s.Page(urls.TeamPrefix+":team/usage.csv", h.Handler(h.teamUsageCSV))
	s.Form(urls.TeamPrefix+":team/manifest", h.Handler(h.Writing(h.manifest(s))), h.Handler(h.Writing(h.submitManifest)))
	s.Page(urls.TeamPrefix+":team/again", h.Handler(h.Writing(h.again)))
	s.Form(urls.TeamPrefix+":team/templates", h.Handler(h.Writing(h.templates)), h.Handler(h.Writing(h.changeTemplates)))
	for _, service := range []serves{"", inference, notebook} {
		s.Form(service.url(":team"), h.Handler(h.submitPage(s, service)), h.Handler(h.Writing(h.submitTask(service))))
	}
	s.Page(urls.TeamPrefix+":team", h.Handler(h.team))
	h.registerAPI(s)
}
