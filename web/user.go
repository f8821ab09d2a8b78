package web

import "github.com/labstack/echo/v4"

// User is who sent a request.
type User struct {
	Name   string
	Groups []string
	Local  bool   // the one identity of a console without sign-in
	From   string // address that the request came from
}

const userKey = "kuota.user"

// UserOf returns who sent the request. It is empty outside the routes that ask
// people to sign in.
func UserOf(c echo.Context) User {
	user, _ := c.Get(userKey).(User)
	return user
}
