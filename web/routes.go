package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// requestLimit is how long a page or a save may wait for the cluster. The server
// closes a connection after responseTimeout, without a response.
const requestLimit = responseTimeout - 10*time.Second

// limited calls next with a context that ends after requestLimit.
func limited(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		ctx, cancel := context.WithTimeout(request.Context(), requestLimit)
		defer func() {
			cancel()
			c.SetRequest(request) // an error page is rendered with it
		}()
		c.SetRequest(request.WithContext(ctx))
		return next(c)
	}
}

// Page registers a page for signed-in users. All others are redirected to sign-in.
func (s *Server) Page(path string, handler echo.HandlerFunc) {
	s.echo.Match([]string{http.MethodGet, http.MethodHead}, path, s.signedIn(limited(handler)))
}

// Events registers an event stream for signed-in users. Opening a stream does not
// extend the session.
func (s *Server) Events(path string, handler echo.HandlerFunc) {
	s.echo.GET(path, s.authenticated(s.sameUser(handler), false), s.sameOriginOnly)
}

// File registers a file of any length for signed-in users, which handler sends by
// SendFile.
func (s *Server) File(path string, handler echo.HandlerFunc) {
	s.echo.GET(path, s.signedIn(handler))
}

// Form registers a form: show handles GET and save handles POST of one address.
// A form submitted after the session ended is kept while the user signs in
// again: show gets it from Draft. The field "as" of the form names the user who
// opened it; the form is not saved for another user.
func (s *Server) Form(path string, show, save echo.HandlerFunc) {
	s.Page(path, show)
	s.echo.POST(path, s.signedIn(limited(s.sameSender(save))))
	s.forms[path] = true
}

// Public registers a page that needs no sign-in. It must not show anything about
// the cluster or its users.
func (s *Server) Public(path string, handler echo.HandlerFunc) {
	s.echo.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
}

// Routes returns all registered routes.
func (s *Server) Routes() []*echo.Route { return s.echo.Routes() }

// noRoute answers a request without a route: as not allowed at an address that has routes of
// other methods, as not found everywhere else. Echo finds this route before it compares methods.
func (s *Server) noRoute(c echo.Context) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := s.echo.NewContext(c.Request(), nil)
		s.echo.Router().Find(method, echo.GetPath(c.Request()), other)
		if other.Path() != c.Path() {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return echo.ErrNotFound
	}
	c.Response().Header().Set(echo.HeaderAllow, strings.Join(allowed, ", "))
	return echo.ErrMethodNotAllowed
}
