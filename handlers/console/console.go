package console

import (
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Console is embedded by every package of pages: the frame around a page, the user
// and their permissions, and answers to errors.
type Console struct {
	Allocations     Allocations
	Departments     Departments
	Tasks           Tasks
	Capacity        Capacity
	Settings        Settings
	Alerts          Alerts  // nil without history
	Notices         Notices // nil without history or sign-in
	Contact         Contact
	CapacityChanges Listener
	// Trouble returns a sentence about what keeps the whole console from working, or "".
	// nil means never.
	Trouble func() string
	// ReadOnly returns a sentence about why the console writes nothing, or "" if it
	// writes. nil means that it writes.
	ReadOnly    func() string
	ClusterName string // as pages show it
	// Dashboard is the address of an external dashboard; empty for none.
	Dashboard urls.LinkTemplate
	Now       func() time.Time // the clock
	People    People
}

// Register adds the routes of the frame, and of exports, to the server.
func (h *Console) Register(s *web.Server) {
	s.Events("/events", h.events(s))
	s.File(urls.Export, h.export)
}

// External returns a link to an external system, if there is one. Without an end it is until
// the next full minute, so that a live page does not change with each update, and without a
// begin it is of a day.
func (h *Console) External(to urls.LinkTemplate, s urls.LinkSource) views.ExternalLink {
	if to == "" {
		return views.ExternalLink{}
	}
	if s.To.IsZero() {
		s.To = h.Now().Truncate(time.Minute).Add(time.Minute)
	}
	if s.From.IsZero() {
		s.From = s.To.Add(-24 * time.Hour)
	}
	return views.ExternalLink{Host: to.Host(), URL: to.URL(s)}
}

// UserOf returns the user of a request.
func UserOf(c echo.Context) governance.User { return User(web.UserOf(c)) }

// User returns a signed-in user as the domain knows them.
func User(user web.User) governance.User {
	return governance.User{Name: user.Name, Groups: user.Groups, Email: user.Email, Local: user.Local, From: user.From, ServiceAccount: user.ServiceAccount, Writes: user.Writes}
}
