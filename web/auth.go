package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"

	"github.com/labstack/echo/v4"
)

// SignIn configures a console with sign-in.
type SignIn struct {
	URL      *url.URL // by which browsers reach the console; its path is Options.Base
	Provider *signin.Provider
	Sessions *session.Sessions
	Ring     *session.Ring // encrypts the cookies of sign-ins and drafts
}

// maxAnonymousForm is the size in bytes of the longest form that is read without
// a session: one with a script of 256 KiB.
const maxAnonymousForm = 512 << 10

// signedIn calls next only for requests with a session, and marks it as used.
func (s *Server) signedIn(next echo.HandlerFunc) echo.HandlerFunc { return s.authenticated(next, true) }

// authenticated calls next only for requests with a session. used is false for
// requests that an open page sends by itself: they do not extend the session.
func (s *Server) authenticated(next echo.HandlerFunc, used bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch err := s.identify(c, used); {
		case errors.Is(err, session.ErrNotFound):
			return s.requestSignIn(c)
		case errors.Is(err, ErrToken):
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
			message := "The token is not accepted: it is expired, revoked, or for another audience than kuota."
			if refusal, ok := errors.AsType[*signin.Refusal](err); ok {
				message = refusal.Message
			}
			return &Error{Status: http.StatusUnauthorized, Message: message, Err: err}
		case err != nil:
			return &Error{
				Status: http.StatusServiceUnavailable, Retry: true, Err: err,
				Message: "Your session cannot be confirmed: the sign-in provider or the cluster does not answer. You stay signed in; try again in a moment.",
			}
		}
		return next(c)
	}
}

// identify sets the user of a request, for UserOf. used marks the session as used
// by the person, which an open page does not.
func (s *Server) identify(c echo.Context, used bool) error {
	if s.signIn == nil {
		user := s.user
		user.From = c.RealIP()
		c.Set(userKey, user)
		return nil
	}
	if token := bearer(c.Request()); token != "" {
		return s.identifyToken(c, token)
	}
	found, err := s.signIn.Sessions.Find(c.Request().Context(), s.cookie(c, sessionCookie), used)
	if err != nil {
		return err
	}
	c.Set(userKey, sessionUser(found, c.RealIP()))
	return nil
}

// sessionUser returns the user of a session, whose request came from an address.
func sessionUser(found session.Session, from string) User {
	return User{Name: found.User, Groups: found.Groups, Email: found.Email, GroupsLeftOut: found.GroupsLeftOut, From: from}
}

// requestSignIn responds to a request without a session. It redirects pages to
// sign-in, keeps submitted forms until the user has signed in, and returns an
// error to scripts.
func (s *Server) requestSignIn(c echo.Context) error {
	request := c.Request()
	switch {
	case WantsFragment(c) || !isNavigation(request):
		return &Error{Status: http.StatusUnauthorized, Message: "You are not signed in.", SignIn: loginAddress("/")}
	case request.Method == http.MethodGet || request.Method == http.MethodHead:
		return c.Redirect(http.StatusSeeOther, loginAddress(request.URL.RequestURI()))
	case !s.forms[c.Path()]:
		return &Error{Status: http.StatusUnauthorized, Message: "You are signed out, and nothing was changed. Sign in and try again.", SignIn: loginAddress("/")}
	}
	request.Body = http.MaxBytesReader(c.Response(), request.Body, maxAnonymousForm)
	values, err := FormValues(c)
	if err != nil {
		return err
	}
	page := views.SignInAgain{Chrome: views.Chrome{Title: "Sign in again"}, Login: loginAddress(request.URL.Path), Action: request.URL.Path}
	if page.Kept = s.setDraft(c, request.URL.Path, values); !page.Kept {
		page.Login = loginAddress(signedInPath) // in another tab
		page.Fields = hiddenFields(values)
	}
	return Render(c, http.StatusUnauthorized, views.SignInAgainPage(page))
}

// FormValues returns the values of a submitted form. The content of a file is the
// value of its input; the server's limit on request bodies bounds all of them.
func FormValues(c echo.Context) (url.Values, error) {
	values, err := c.FormParams()
	if err == nil {
		err = readFiles(c.Request(), values)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, echo.ErrStatusRequestEntityTooLarge):
		err = echo.ErrStatusRequestEntityTooLarge
	case err != nil:
		err = &Error{Status: http.StatusBadRequest, Message: "The form arrived incomplete. Go back and send it again.", Err: err}
	}
	return values, err
}

// readFiles moves the files of a form to its values.
func readFiles(request *http.Request, values url.Values) error {
	if request.MultipartForm == nil {
		return nil
	}
	for name, files := range request.MultipartForm.File {
		for _, header := range files {
			file, err := header.Open()
			if err != nil {
				return err
			}
			content, err := io.ReadAll(file)
			file.Close()
			if err != nil {
				return err
			}
			values.Add(name, string(content))
		}
	}
	request.MultipartForm.File = nil // the next call must not add them again
	return nil
}

// isNavigation reports whether the browser shows the response as a page.
func isNavigation(request *http.Request) bool {
	if mode := request.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(request.Header.Get(echo.HeaderAccept), echo.MIMETextHTML)
}

// loginAddress returns the address that signs in and then opens back.
func loginAddress(back string) string {
	return "/auth/login?" + url.Values{"return": {back}}.Encode()
}

// localAddress returns text if it is an address of this console to which a user
// may be redirected after signing in, else /.
func localAddress(text string) string {
	const maxLength = 2048
	parsed, err := url.Parse(text)
	if err != nil || len(text) > maxLength || !isLocal(parsed) || strings.HasPrefix(parsed.Path, "/auth/") && text != signedInPath {
		return "/"
	}
	return (&url.URL{Path: parsed.Path, RawQuery: parsed.RawQuery}).RequestURI()
}

// isLocal reports whether a browser that opens address stays on this console.
func isLocal(address *url.URL) bool {
	return address.Scheme == "" && address.Host == "" && address.User == nil && address.Opaque == "" &&
		strings.HasPrefix(address.Path, "/") && !strings.HasPrefix(address.Path, "//") &&
		!strings.ContainsAny(address.Path, "\\\r\n\t\x00") && // some browsers treat a backslash as a slash
		!slices.Contains(strings.Split(address.Path, "/"), "..") // which leads out of the base path
}

// ErrToken is the error of Options.Tokens for a token that nobody may use here.
var ErrToken = errors.New("the token is not accepted")

// Tokens returns the user that a bearer token identifies, or ErrToken.
type Tokens func(ctx context.Context, token string) (User, error)

// maxToken is the size in bytes of the longest token that is read.
const maxToken = 16 << 10

// isData reports whether a request reads a file for programs. Only these and the API accept a
// bearer token: no browser sends one by itself.
func isData(request *http.Request) bool {
	path := request.URL.Path
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".csv"))
}

// bearer returns the token of a request for data or of the API; empty for none.
func bearer(request *http.Request) string {
	scheme, token, ok := strings.Cut(request.Header.Get(echo.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !isData(request) && !isAPI(request) || isNavigation(request) {
		return ""
	}
	return strings.TrimSpace(token)
}

// identifyToken sets the user of a request with a bearer token.
func (s *Server) identifyToken(c echo.Context, token string) error {
	if s.tokens == nil || len(token) > maxToken {
		return ErrToken
	}
	user, err := s.tokens(c.Request().Context(), token)
	if err != nil {
		return err
	}
	user.From = c.RealIP()
	c.Set(userKey, user)
	return nil
}
