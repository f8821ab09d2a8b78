package web

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"

	"github.com/labstack/echo/v4"
)

// SignIn is what a console needs where people sign in.
type SignIn struct {
	URL      *url.URL // how browsers reach the console: scheme and host
	Provider *signin.Provider
	Sessions *session.Sessions
	Ring     *session.Ring // seals what browsers keep during sign-in
}

// maxAnonymous is the longest form, in bytes, that is looked at from somebody
// who is not signed in: several times what the longest form here takes.
const maxAnonymousForm = 64 << 10

// signedIn lets a request through to a handler when it is known who sent it.
func (s *Server) signedIn(next echo.HandlerFunc) echo.HandlerFunc { return s.authenticated(next, true) }

// known is signedIn for what a page may do by itself too: used says whether
// the person did something.
func (s *Server) authenticated(next echo.HandlerFunc, used bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch err := s.identify(c, used); {
		case errors.Is(err, session.ErrNotFound):
			return s.requestSignIn(c)
		case err != nil:
			return &Error{
				Status: http.StatusServiceUnavailable, Retry: true, Err: err,
				Message: "Your session cannot be confirmed: the sign-in provider or the cluster does not answer. You stay signed in; try again in a moment.",
			}
		}
		return next(c)
	}
}

// identify puts who sent a request into it. used says that the person did
// something, rather than that a page of theirs is open.
func (s *Server) identify(c echo.Context, used bool) error {
	if s.signIn == nil {
		user := s.user
		user.From = c.RealIP()
		c.Set(userKey, user)
		return nil
	}
	found, err := s.signIn.Sessions.Find(c.Request().Context(), s.cookie(c, sessionCookie), used)
	if err != nil {
		return err
	}
	c.Set(userKey, User{Name: found.User, Groups: found.Groups, From: c.RealIP()})
	return nil
}

// askToSignIn sends somebody who opens a page to the provider. A form that was
// sent comes back filled in afterwards. A script is told, and decides itself.
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

// FormValues reads a form that was sent. A file in it is the value of its
// input; the server's limit on bodies bounds them together.
func FormValues(c echo.Context) (url.Values, error) {
	values, err := c.FormParams()
	if err == nil {
		err = readFiles(c.Request(), values)
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long), errors.Is(err, echo.ErrStatusRequestEntityTooLarge):
		err = echo.ErrStatusRequestEntityTooLarge
	case err != nil:
		err = &Error{Status: http.StatusBadRequest, Message: "The form arrived incomplete. Go back and send it again.", Err: err}
	}
	return values, err
}

// readFiles puts the files of a form among its values, once.
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
	request.MultipartForm.File = nil // they are values now, for whoever reads the form next
	return nil
}

// opensPage tells whether a browser shows the answer to a person.
func isNavigation(request *http.Request) bool {
	if mode := request.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(request.Header.Get(echo.HeaderAccept), echo.MIMETextHTML)
}

func loginAddress(back string) string {
	return "/auth/login?" + url.Values{"return": {back}}.Encode()
}

// localAddress is an address of this console that somebody may be sent to
// after signing in; / for everything that is not one.
func localAddress(text string) string {
	const longest = 2048
	parsed, err := url.Parse(text)
	if err != nil || len(text) > longest || !isLocal(parsed) || strings.HasPrefix(parsed.Path, "/auth/") && text != signedInPath {
		return "/"
	}
	return (&url.URL{Path: parsed.Path, RawQuery: parsed.RawQuery}).RequestURI()
}

// isLocal tells whether a browser that is given this address stays here.
func isLocal(address *url.URL) bool {
	return address.Scheme == "" && address.Host == "" && address.User == nil && address.Opaque == "" &&
		strings.HasPrefix(address.Path, "/") && !strings.HasPrefix(address.Path, "//") &&
		!strings.ContainsAny(address.Path, "\\\r\n\t\x00") // some browsers take a backslash for a slash
}
