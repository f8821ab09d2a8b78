package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Page registers what people who are signed in read. Everybody else is sent to
// sign in, or told so; there is no list of exceptions.
func (s *Server) Page(path string, handler echo.HandlerFunc) {
	s.echo.Match([]string{http.MethodGet, http.MethodHead}, path, s.signedIn(handler))
}

// Events registers a stream for people who are signed in. A page that opens it
// again keeps nobody signed in.
func (s *Server) Events(path string, handler echo.HandlerFunc) {
	s.echo.GET(path, s.authenticated(s.sameUser(handler), false), s.sameOriginOnly)
}

// Form registers a form and where it is sent, both under one address. What was
// typed by somebody whose session ended is kept through signing in again: show
// finds it with Draft. A form says in a field named as who opened it, and is
// not saved for somebody else.
func (s *Server) Form(path string, show, save echo.HandlerFunc) {
	s.Page(path, show)
	s.echo.POST(path, s.signedIn(s.sameSender(save)))
	s.forms[path] = true
}

// Public registers what anybody may read. It must tell nothing about the
// cluster or its people.
func (s *Server) Public(path string, handler echo.HandlerFunc) {
	s.echo.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
}

// Routes are all that is registered.
func (s *Server) Routes() []*echo.Route { return s.echo.Routes() }
