package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/views"

	"github.com/labstack/echo/v4"
)

// Error is an answer that is not the page that was asked for.
type Error struct {
	Status  int    // HTTP status
	Title   string // the page's heading; empty takes the status' name
	Message string // for the person
	Retry   bool   // whether trying the same again may help
	SignIn  string // where to sign in, if that helps
	Err     error  // the cause, for the log only
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// errorPages turns errors into pages.
type errorPages struct {
	chromeOf func(echo.Context) views.Chrome
	log      *slog.Logger
	fallback []byte // rendered at start, so that the last resort cannot fail
}

const internalErrorMessage = "Something went wrong. Ask a cluster admin to check the console's log."

func newErrorPages(chrome func(echo.Context) views.Chrome, log *slog.Logger) (*errorPages, error) {
	var page bytes.Buffer
	err := views.Error(views.ErrorPage{
		Chrome: views.Chrome{Title: "Something went wrong"}, Status: http.StatusInternalServerError, Message: internalErrorMessage,
	}).Render(context.Background(), &page)
	return &errorPages{chromeOf: chrome, log: log, fallback: page.Bytes()}, err
}

// handle is Echo's error handler.
func (p *errorPages) handle(err error, c echo.Context) {
	if c.Response().Committed || c.Request().Context().Err() != nil {
		return // nobody waits for it any more; a cancelled question of our own is no reason to say nothing
	}
	answer := toError(err)
	if answer.Status >= http.StatusInternalServerError {
		p.log.Error("request failed", "method", c.Request().Method, "path", c.Request().URL.Path, "status", answer.Status, "error", err)
	}
	page := views.ErrorPage{Chrome: p.chromeOf(c), Status: answer.Status, Message: answer.Message, SignIn: answer.SignIn}
	page.Title = cmp.Or(answer.Title, statusTitle(answer.Status))
	if answer.Retry && c.Request().Method == http.MethodGet && isLocal(&url.URL{Path: c.Request().URL.Path}) {
		page.Retry = c.Request().URL.RequestURI()
	}
	if rendered := Render(c, answer.Status, views.Error(page)); rendered != nil && !c.Response().Committed {
		p.log.Error("error page failed", "error", rendered)
		_ = c.HTMLBlob(http.StatusInternalServerError, p.fallback) // nothing is left to try
	}
}

// title is the name of a status as a heading: Not found.
func statusTitle(status int) string {
	name := http.StatusText(status)
	if name == "" {
		return "Something went wrong"
	}
	return name[:1] + strings.ToLower(name[1:])
}

// classify makes any error one of ours. Echo's own come from routing and its
// middleware, and their text is not for people.
func toError(err error) *Error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	var echos *echo.HTTPError
	if errors.As(err, &echos) {
		message := "The console cannot process this request."
		switch echos.Code {
		case http.StatusNotFound:
			message = "Page not found, or you do not have access."
		case http.StatusMethodNotAllowed:
			message = "This address does not support this kind of request."
		case http.StatusRequestEntityTooLarge:
			message = "The form is too large. Enter less text."
		}
		return &Error{Status: echos.Code, Message: message, Err: err}
	}
	return &Error{Status: http.StatusInternalServerError, Message: internalErrorMessage, Err: err}
}
