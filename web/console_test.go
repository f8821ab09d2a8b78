package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// console is a console with sign-in that counts saved forms.
type console struct {
	*webtest.Console
	mu    sync.Mutex
	saved []url.Values
}

// start runs a console with the routes of server_test.go and those of the sign-in
// tests.
func start(t testing.TB, setup webtest.Setup) *console {
	t.Helper()
	c := &console{}
	more := setup.Register
	setup.Register = func(server *web.Server) {
		routes(server)
		if more != nil {
			more(server)
		}
		about := func(c echo.Context) string {
			user := web.UserOf(c)
			return fmt.Sprintf("%s of %d groups %.99q from %s.", user.Name, len(user.Groups), user.Groups, user.From)
		}
		server.Page("/me", func(c echo.Context) error { return c.String(http.StatusOK, about(c)) })
		server.Events("/me/events", func(c echo.Context) error {
			part := func(context.Context) (templ.Component, error) { return templ.Raw(about(c)), nil }
			return server.Stream(c, web.Part{Render: part}, part)
		})
		server.Form("/form", func(c echo.Context) error {
			draft := server.Draft(c)
			return c.String(http.StatusOK, fmt.Sprintf("%d fields: %s", len(draft), draft.Encode()))
		}, func(e echo.Context) error {
			values, err := e.FormParams()
			if err != nil {
				return &web.Error{Status: http.StatusBadRequest, Message: "The form arrived incomplete.", Err: err}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.saved = append(c.saved, values)
			return e.String(http.StatusOK, "saved by "+web.UserOf(e).Name)
		})
		server.Form("/form/other", func(c echo.Context) error {
			return c.String(http.StatusOK, fmt.Sprintf("%d fields", len(server.Draft(c))))
		}, func(echo.Context) error { return nil })
		server.Page("/away", func(echo.Context) error {
			return &web.Error{Status: http.StatusServiceUnavailable, Message: "Not now.", Retry: true, Err: context.Canceled}
		})
		server.Page("/late", func(echo.Context) error { return fmt.Errorf("read: %w", context.DeadlineExceeded) })
		server.Public("/open", func(c echo.Context) error { return c.String(http.StatusOK, "open") })
	}
	if setup.Chrome == nil {
		setup.Chrome = func(c echo.Context) views.Chrome { return views.Chrome{User: web.UserOf(c).Name} }
	}
	c.Console = webtest.Start(t, setup)
	return c
}

// posts returns the number of saved forms.
func (c *console) posts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.saved)
}

// away makes the provider answer only 503, or restores it.
func away(c *console, is bool) {
	c.Provider.Change(func(b *signintest.Behavior) { b.Unavailable = is })
}

// wait polls until the condition holds, or fails after limit; slowly enough to stay
// below the limit of sign-ins.
func wait(t *testing.T, what string, limit time.Duration, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
