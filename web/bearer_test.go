package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/labstack/echo/v4"
)

// A bearer token reads files for programs, and opens and changes nothing else.
func TestBearerTokens(t *testing.T) {
	c := webtest.Start(t, webtest.Setup{
		Register: func(s *web.Server) {
			who := func(c echo.Context) error { return c.String(http.StatusOK, "hello "+web.UserOf(c).Name) }
			s.Page("/data.json", who)
			s.File("/data.csv", who)
			s.Form("/page", who, who)
			s.Events("/page/events", who)
		},
		Tokens: func(_ context.Context, token string) (web.User, error) {
			switch token {
			case "good":
				return web.User{Name: "robot", ServiceAccount: true}, nil
			case "down":
				return web.User{}, errors.New("the API server does not answer")
			}
			return web.User{}, web.ErrToken
		},
	})
	for name, tc := range map[string]struct {
		method, path, header string
		status               int
		body                 string
	}{
		"JSON":             {"GET", "/data.json", "Bearer good", 200, "hello robot"},
		"CSV":              {"GET", "/data.csv", "bearer  good", 200, "hello robot"},
		"refused":          {"GET", "/data.json", "Bearer bad", 401, `"error":"The token is not accepted`},
		"too long":         {"GET", "/data.json", "Bearer " + strings.Repeat("x", 20_000), 401, `"status":401`},
		"unavailable":      {"GET", "/data.json", "Bearer down", 503, `"status":503`},
		"another scheme":   {"GET", "/data.json", "Basic good", 401, "not signed in"},
		"no token":         {"GET", "/data.json", "Bearer ", 401, "not signed in"},
		"a page":           {"GET", "/page", "Bearer good", 401, "not signed in"},
		"a stream":         {"GET", "/page/events", "Bearer good", 401, ""},
		"a form":           {"POST", "/page", "Bearer good", 401, ""},
		"POST of data":     {"POST", "/data.json", "Bearer good", 401, ""},
		"an unknown file":  {"GET", "/other.json", "Bearer good", 404, `"status":404`},
		"a page in a file": {"GET", "/page?x=.json", "Bearer good", 401, "not signed in"},
	} {
		response := c.Browser(t).Ask(tc.method, tc.path, "", "Authorization", tc.header)
		if response.StatusCode != tc.status || !strings.Contains(response.Text, tc.body) {
			t.Errorf("%s: got status %d, want %d with %q: %.300s", name, response.StatusCode, tc.status, tc.body, response.Text)
		}
		if len(response.Header["Set-Cookie"]) > 0 {
			t.Errorf("%s: the answer sets a cookie", name)
		}
	}
}

// Without a client of the command line there is nothing to sign in with.
func TestCommandLineFile(t *testing.T) {
	response := webtest.Start(t, webtest.Setup{}).Browser(t).Open(web.CommandLinePath)
	if response.StatusCode != http.StatusNotFound || !strings.Contains(response.Text, "service account") {
		t.Errorf("got status %d: %s", response.StatusCode, response.Text)
	}
}
