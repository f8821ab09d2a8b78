package web

import "github.com/labstack/echo/v4"

// User is who sent a request.
type User struct {
	Name   string
	Groups []string
	Local  bool // the one identity of a console without sign-in
}

const userKey = "kuota.user"

// UserOf returns who sent the request; middleware has put it there.
func UserOf(c echo.Context) User {
	user, _ := c.Get(userKey).(User)
	return user
}

// actAs puts one identity into every request, until people sign in.
func actAs(user User) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set(userKey, user)
			return next(c)
		}
	}
}
