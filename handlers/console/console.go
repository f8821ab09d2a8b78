package console

import (
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Console is what every page needs: the frame around it, who the reader is and
// what they may do, and how errors are answered. Packages of pages embed it.
type Console struct {
	Allocations     Allocations
	Tasks           Tasks
	Capacity        Capacity
	Settings        Settings
	Contact         Contact
	CapacityChanges Listener
	// Trouble returns a sentence about what keeps the whole console from working;
	// empty for nothing. nil is never.
	Trouble func() string
	// ReadOnly returns a sentence about why the console writes nothing; empty when it
	// writes. nil is never.
	ReadOnly    func() string
	ClusterName string           // as pages show it
	Now         func() time.Time // the clock
}

// Register adds the route of the frame to the server.
func (h *Console) Register(s *web.Server) {
	s.Events("/events", h.events(s))
}

// UserOf returns the user of a request.
func UserOf(c echo.Context) governance.User {
	user := web.UserOf(c)
	return governance.User{Name: user.Name, Groups: user.Groups, Local: user.Local, From: user.From}
}
