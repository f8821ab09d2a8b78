package web

import "github.com/labstack/echo/v4"

// User is the user who sent a request.
type User struct {
	Name   string
	Groups []string
	// GroupsLeftOut: see signin.Identity.
	GroupsLeftOut bool
	Local         bool   // the user of a console without sign-in
	From          string // address of the client
	// ServiceAccount marks an account of Kubernetes, which the API server confirmed. It
	// only reads.
	ServiceAccount bool
}

const userKey = "kuota.user"

// UserOf returns the user who sent the request. It is empty for routes without
// sign-in.
func UserOf(c echo.Context) User {
	user, _ := c.Get(userKey).(User)
	return user
}
