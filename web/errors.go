package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"

	"github.com/labstack/echo/v4"
)

// Error is the response to a request that failed. The error handler renders it
// as a page.
type Error struct {
	Status  int    // HTTP status
	Title   string // the page's heading; empty means the name of the status
	Message string // for the user: what is wrong, what to do
	Retry   bool   // whether the page offers to try again
	SignIn  string // address to sign in at, if that helps
	Fields  []Field
	Err     error // the cause, only logged
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// dataError is an error in the format of files for programs.
type dataError struct {
	Status  int    `json:"status"`
	Message string `json:"error"`
}

// errorPages renders errors as pages.
type errorPages struct {
	chromeOf func(echo.Context) views.Chrome
	log      *slog.Logger
	fallback []byte // rendered at start, for when rendering fails
}

const internalErrorMessage = "Something went wrong. Ask a cluster admin to check the console's log."

func newErrorPages(base string, chrome func(echo.Context) views.Chrome, log *slog.Logger) (*errorPages, error) {
	var page bytes.Buffer
	err := views.Error(views.ErrorPage{
		Chrome: views.Chrome{Title: "Something went wrong"}, Status: http.StatusInternalServerError, Message: internalErrorMessage,
	}).Render(ui.WithBase(context.Background(), base), &page)
	return &errorPages{chromeOf: chrome, log: log, fallback: page.Bytes()}, err
}

// handle implements echo.HTTPErrorHandler.
func (p *errorPages) handle(err error, c echo.Context) {
	if broken := (brokenFile{}); errors.As(err, &broken) {
		if c.Request().Context().Err() == nil {
			p.log.Error("file broken off", "path", c.Request().URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	if c.Response().Committed || c.Request().Context().Err() != nil {
		return // the client disconnected; a context of our own that was canceled still gets a page
	}
	answer := toError(err)
	if answer.Status >= http.StatusInternalServerError {
		p.log.Error("request failed", "method", c.Request().Method, "path", c.Request().URL.Path, "status", answer.Status, "error", err)
	}
	if isAPI(c.Request()) {
		if answer.Status == http.StatusRequestEntityTooLarge {
			answer.Message = "The body is too large: send at most 1 MiB."
		}
		problem := Problem{Type: "about:blank", Title: statusTitle(answer.Status), Status: answer.Status, Detail: answer.Message, Errors: answer.Fields}
		c.Response().Header().Set(echo.HeaderContentType, "application/problem+json")
		c.Response().WriteHeader(answer.Status)
		_ = json.NewEncoder(c.Response()).Encode(problem) // best effort
		return
	}
	if isData(c.Request()) && !isNavigation(c.Request()) {
		_ = c.JSON(answer.Status, dataError{answer.Status, answer.Message}) // best effort
		return
	}
	page := views.ErrorPage{Chrome: p.chromeOf(c), Status: answer.Status, Message: answer.Message, SignIn: answer.SignIn}
	page.Title = cmp.Or(answer.Title, statusTitle(answer.Status))
	if answer.Retry && c.Request().Method == http.MethodGet && isLocal(&url.URL{Path: c.Request().URL.Path}) {
		page.Retry = c.Request().URL.RequestURI()
	}
	if rendered := Render(c, answer.Status, views.Error(page)); rendered != nil && !c.Response().Committed {
		p.log.Error("error page failed", "error", rendered)
		_ = c.HTMLBlob(http.StatusInternalServerError, p.fallback) // best effort
	}
}

// statusTitle returns the name of a status in sentence case, such as Not found.
func statusTitle(status int) string {
	name := http.StatusText(status)
	if name == "" {
		return "Something went wrong"
	}
	return name[:1] + strings.ToLower(name[1:])
}

// toError returns err as an Error. The text of Echo's own errors, which come from
// routing and middleware, is not for users.
func toError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var httpError *echo.HTTPError
	if errors.As(err, &httpError) {
		message := "The console cannot process this request."
		switch httpError.Code {
		case http.StatusNotFound:
			message = "Page not found, or you do not have access."
		case http.StatusMethodNotAllowed:
			message = "This address does not support this kind of request."
		case http.StatusRequestEntityTooLarge:
			message = "The form is too large. Enter less text."
		}
		return &Error{Status: httpError.Code, Message: message, Err: err}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Status: http.StatusServiceUnavailable, Message: "The console did not answer in time. Try again in a moment.", Retry: true, Err: err}
	}
	return &Error{Status: http.StatusInternalServerError, Message: internalErrorMessage, Err: err}
}
