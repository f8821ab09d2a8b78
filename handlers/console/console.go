package console

import (
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Console is embedded by every package of pages: the frame around a page, the user
// and their permissions, and answers to errors.
type Console struct {
	Allocations     Allocations
	Tasks           Tasks
	Capacity        Capacity
	Settings        Settings
	Alerts          Alerts // nil without history
	Contact         Contact
	CapacityChanges Listener
	// Trouble returns a sentence about what keeps the whole console from working, or "".
	// nil means never.
	Trouble func() string
	// ReadOnly returns a sentence about why the console writes nothing, or "" if it
	// writes. nil means that it writes.
	ReadOnly    func() string
	ClusterName string           // as pages show it
	Now         func() time.Time // the clock
}

// Register adds the routes of the frame, and of exports, to the server.
func (h *Console) Register(s *web.Server) {
	s.Events("/events", h.events(s))
	s.File(urls.Export, h.export)
}

// UserOf returns the user of a request.
func UserOf(c echo.Context) governance.User { return User(web.UserOf(c)) }

// User returns a signed-in user as the domain knows them.
func User(user web.User) governance.User {
	return governance.User{Name: user.Name, Groups: user.Groups, Local: user.Local, From: user.From, ServiceAccount: user.ServiceAccount}
}
