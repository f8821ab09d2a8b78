package web

import (
	"net/http"
	"net/url"

	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// otherPerson is the answer to a page that was opened by somebody else than who
// is signed in now: in another tab of the same browser one can change.
var errOtherUser = &Error{Status: http.StatusConflict, Message: "Another user is signed in now. Reload the page."}

// samePerson refuses what a page asks that was opened by somebody else; the
// page says by whom, with ?as=.
func (s *Server) sameUser(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if as := c.QueryParam("as"); as != "" && as != UserOf(c).Name {
			return errOtherUser
		}
		return next(c)
	}
}

// sameSender keeps a form from being saved for somebody else than who filled it
// in, and keeps the form.
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
			Chrome: views.Chrome{Title: "Signed in as another user"}, Was: as, Now: now,
			Action: c.Request().URL.Path, Fields: hiddenFields(values),
		}
		return Render(c, http.StatusConflict, views.SignInAgainPage(page))
	}
}

// hiddenFields are a form as another page holds it.
func hiddenFields(values url.Values) (fields []views.HiddenField) {
	for name, all := range values {
		for _, value := range all {
			fields = append(fields, views.HiddenField{Name: name, Value: value})
		}
	}
	return fields
}
