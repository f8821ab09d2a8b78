package web

import (
	"errors"
	"net/http"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"

	"github.com/labstack/echo/v4"
)

// registerSignIn registers the routes of sign-in and sign-out.
func (s *Server) registerSignIn() {
	limit := s.limitSignIn()
	s.echo.GET("/auth/login", s.login, limit)
	s.echo.GET("/auth/callback", s.callback, limit)
	s.echo.POST("/auth/logout", s.logout)
	s.Public("/auth/signed-out", s.signedOutPage)
	s.Page(signedInPath, s.signedInPage)
	s.Public(CommandLinePath, s.commandLine)
	s.echo.GET("/auth/session", s.authenticated(s.sameUser(func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }), false))
}

// CommandLinePath has what kuota login needs.
const CommandLinePath = "/auth/command-line.json"

// CommandLine is the JSON of CommandLinePath.
type CommandLine struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// Claims are those that ID tokens must have.
	Claims []string `json:"claims"`
}

// commandLine handles GET /auth/command-line.json.
func (s *Server) commandLine(c echo.Context) error {
	issuer, client, claims := s.signIn.Provider.CommandLine()
	if client == "" {
		return &Error{Status: http.StatusNotFound, Message: "This console has no client for kuota login. Use a token of a service account, or ask a cluster admin to set --oidc-command-line-client-id."}
	}
	return c.JSON(http.StatusOK, CommandLine{issuer, client, claims})
}

// signedInPath is the page after signing in from another tab.
const signedInPath = "/auth/signed-in"

// signedInPage handles GET /auth/signed-in.
func (s *Server) signedInPage(c echo.Context) error {
	return Render(c, http.StatusOK, views.SignedInPage(views.Chrome{Title: "Signed in"}))
}

// login handles GET /auth/login: it redirects to the provider.
func (s *Server) login(c echo.Context) error {
	address, begun, err := s.signIn.Provider.Begin(c.Request().Context())
	if err != nil {
		return &Error{
			Status: http.StatusServiceUnavailable, Retry: true, Err: err,
			Message: "The sign-in provider does not answer, so sign-in is not possible now. Tasks and queues continue; try again in a moment.",
		}
	}
	if err := s.setAttempt(c, attempt{Attempt: begun, Session: session.NewID(), Return: localAddress(c.QueryParam("return")), Until: s.now().Add(signInTimeout)}); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, address)
}

// callback handles GET /auth/callback: the response of the provider.
func (s *Server) callback(c echo.Context) error {
	begun, ok := s.takeAttempt(c, c.QueryParam("state"))
	if !ok {
		if s.identify(c, true) == nil { // the user went back after signing in
			return c.Redirect(http.StatusSeeOther, "/")
		}
		return &Error{Status: http.StatusBadRequest, SignIn: loginAddress("/"), Message: "This sign-in was started in another browser, is already used, or has expired. Sign in again."}
	}
	identity, err := s.signIn.Provider.Finish(c.Request().Context(), begun.Attempt, c.QueryParams())
	var refusal *signin.Refusal
	switch {
	case errors.As(err, &refusal):
		s.log.Warn("sign-in refused", "from", c.RealIP(), "error", err)
		return &Error{Status: http.StatusForbidden, Title: "Not signed in", Message: refusal.Message, SignIn: loginAddress(begun.Return), Err: err}
	case err != nil:
		return &Error{
			Status: http.StatusServiceUnavailable, SignIn: loginAddress(begun.Return), Err: err,
			Message: "The sign-in provider stopped answering. Sign in again in a moment.",
		}
	}
	switch err := s.signIn.Sessions.Create(c.Request().Context(), begun.Session, identity); {
	case errors.Is(err, session.ErrNotFound):
		return &Error{Status: http.StatusBadRequest, SignIn: loginAddress("/"), Message: "This sign-in is already used. Sign in again.", Err: err}
	case err != nil:
		return &Error{
			Status: http.StatusServiceUnavailable, SignIn: loginAddress(begun.Return), Err: err,
			Message: "You cannot sign in now: the cluster, which stores sessions, does not answer. Try again in a moment.",
		}
	}
	if replaced := s.cookie(c, sessionCookie); replaced != "" {
		_, _ = s.signIn.Sessions.End(c.Request().Context(), replaced) // best effort: it expires otherwise
	}
	s.setCookie(c, sessionCookie, begun.Session, s.signIn.Sessions.Limits.Absolute)
	s.log.Info("signed in", "user", identity.User, "groups", len(identity.Groups), "from", c.RealIP())
	return c.Redirect(http.StatusSeeOther, begun.Return)
}

// logout handles POST /auth/logout: it ends the session and leads to the
// provider's sign-out. The response is a page and not a redirect because the
// content security policy limits form targets to this console.
func (s *Server) logout(c echo.Context) error {
	page := views.SignedOut{Chrome: views.Chrome{Title: "Signed out"}, SignIn: loginAddress("/")}
	ended, err := s.signIn.Sessions.End(c.Request().Context(), s.cookie(c, sessionCookie))
	switch {
	case err == nil:
		s.log.Info("signed out", "user", ended.User, "from", c.RealIP())
		page.Provider = s.signIn.Provider.SignOutURL(ended.IDToken)
		page.RedirectURL = page.Provider
	case !errors.Is(err, session.ErrNotFound):
		return &Error{Status: http.StatusServiceUnavailable, Err: err, Message: "You are still signed in: the cluster, which stores sessions, does not answer. Sign out again in a moment."}
	}
	s.setCookie(c, sessionCookie, "", 0)
	s.setCookie(c, draftCookie, "", 0)
	// "cookies" would delete the cookies of all hosts of the domain, and "cache" only
	// static files: pages are never stored. With a base path, storage is that of other
	// applications too; the console stores nothing there.
	if s.base == "" {
		c.Response().Header().Set("Clear-Site-Data", `"storage"`)
	}
	return Render(c, http.StatusOK, views.SignedOutPage(page))
}

// signedOutPage handles GET /auth/signed-out: the return from the provider.
func (s *Server) signedOutPage(c echo.Context) error {
	return Render(c, http.StatusOK, views.SignedOutPage(views.SignedOut{Chrome: views.Chrome{Title: "Signed out"}, SignIn: loginAddress("/")}))
}
