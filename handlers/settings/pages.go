package settings

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the route of the settings.
type Pages struct {
	*console.Console
	Setup     Setup
	Recording func() recorder.State                                                                   // how history is written; nil without history
	SetAside  func(ctx context.Context, since time.Time) (n int, latest *history.SetAside, err error) // records that history refused; nil without history
	Leader    func() leader.State                                                                     // which replica runs the controllers
	Replays   func() []live.Replay                                                                    // contradicted explanations; nil without simulations
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Settings, h.Handler(h.settings))
	s.Page(urls.Settings+"/replays/:replay", h.Handler(h.replay))
}
