package web

import (
	"net/http"
	"net/url"

	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// errOtherUser rejects requests of a page that another user opened: the user can
// change in another tab of the same browser.
var errOtherUser = &Error{Status: http.StatusConflict, Message: "Another user is signed in now. Reload the page."}

// sameUser rejects requests of a page that another user opened. The page sends
// the name of its user with ?as=.
func (s *Server) sameUser(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if as := c.QueryParam("as"); as != "" && as != UserOf(c).Name {
			return errOtherUser
		}
		return next(c)
	}
}

// sameSender rejects a form that another user filled in, and shows it again so
// that nothing typed is lost.
func (s *Server) sameSender(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		values, err := FormValues(c)
		if err != nil {
			return err
		}
		as, now := values.Get("as"), UserOf(c).Name
		switch {
		case as == "" || as == now:
			return next(c)
		case WantsFragment(c):
			return errOtherUser
		}
		page := views.SignInAgain{
			Chrome: views.Chrome{Title: "Signed in as another user"}, OpenedBy: as, SignedInAs: now,
			Action: c.Request().URL.Path, Fields: hiddenFields(values),
		}
		return Render(c, http.StatusConflict, views.SignInAgainPage(page))
	}
}

// hiddenFields returns the values of a form as hidden fields of another page.
func hiddenFields(values url.Values) (fields []views.HiddenField) {
	for name, all := range values {
		for _, value := range all {
			fields = append(fields, views.HiddenField{Name: name, Value: value})
		}
	}
	return fields
}

// User is the user who sent a request.
type User struct {
	Name   string
	Groups []string
	Email  string // see signin.Identity
	// GroupsLeftOut: see signin.Identity.
	GroupsLeftOut bool
	Local         bool   // the user of a console without sign-in
	From          string // address of the client
	// ServiceAccount marks an account of Kubernetes, which the API server confirmed. It
	// only reads, unless Writes is set: see governance.User.
	ServiceAccount, Writes bool
}

const userKey = "kuota.user"

// UserOf returns the user who sent the request. It is empty for routes without
// sign-in.
func UserOf(c echo.Context) User {
	user, _ := c.Get(userKey).(User)
	return user
}
