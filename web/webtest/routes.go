package webtest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// Access is who may see a route.
type Access string

// The ways a route may be open.
const (
	SignedIn Access = "people who are signed in"
	Public   Access = "anybody"
)

// Unknown is the key of what answers every address that is no route.
const Unknown = echo.RouteNotFound + " /*"

// parameter is a part of a path that stands for others.
var parameter = regexp.MustCompile(`:[^/]+|\*`)

// CheckRoutes holds every route to a table, with keys like "GET /tasks": one
// that is not in it fails. Where only people who are signed in may see it,
// whatever merely looks like a session is refused, and nothing hidden is told.
func CheckRoutes(t *testing.T, c *Console, table map[string]Access, hidden ...string) {
	t.Helper()
	g := &routeCheck{t: t, c: c, user: c.Browser(t).SignIn(), anonymous: c.Browser(t), hidden: append(hidden, "ada@example.com")}
	g.anonymous.client.Jar = nil
	pretenders := c.invalidCredentials(t)
	seen := map[string][]string{} // methods by path
	for _, route := range c.Routes() {
		key := route.Method + " " + route.Path
		access, known := table[key]
		if !known {
			t.Errorf("%s is not in the table: say who may see it", key)
			continue
		}
		method := route.Method
		if key == Unknown {
			method = http.MethodGet
		}
		// A placeholder by its own name is an address as well (CVE-2021-39226).
		for _, path := range slices.Compact([]string{parameter.ReplaceAllString(route.Path, "x"), route.Path}) {
			seen[path] = append(seen[path], method)
			if access == SignedIn {
				for name, headers := range pretenders {
					g.wantRejected(method, path, name, headers)
				}
			}
			g.wantAdmitted(method, path, access)
		}
	}
	for key := range table {
		if !slices.ContainsFunc(c.Routes(), func(r *echo.Route) bool { return r.Method+" "+r.Path == key }) {
			t.Errorf("%s is in the table and no route", key)
		}
	}
	for path, methods := range seen {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "ODD"} {
			if !slices.Contains(methods, method) {
				g.wantNoRoute(method, path)
			}
		}
	}
}

// guard checks the routes of one console.
type routeCheck struct {
	t               *testing.T
	c               *Console
	user, anonymous *Browser // who is signed in, and who is not
	hidden          []string // what strangers must not be shown
}

// refused checks that somebody who is not signed in gets nowhere.
func (g *routeCheck) wantRejected(method, path, who string, headers []string) {
	g.t.Helper()
	for how, sent := range map[string][]string{"as a page": Navigation, "by a script": Script, "by a program": nil} {
		answer := g.anonymous.Ask(method, path, "", slices.Concat(sent, headers)...)
		want := http.StatusUnauthorized
		if how == "as a page" && (method == http.MethodGet || method == http.MethodHead) {
			want = http.StatusSeeOther
		}
		if answer.StatusCode != want {
			g.t.Errorf("%s %s, asked for %s with %s: %s, want %d", method, path, how, who, answer.Status, want)
		}
		if to := answer.Header.Get("Location"); want == http.StatusSeeOther && !strings.HasPrefix(to, "/auth/login?return=") {
			g.t.Errorf("%s %s, asked for %s with %s: leads to %s", method, path, how, who, to)
		}
		g.wantHidden(method+" "+path+", asked for "+how+" with "+who, answer)
	}
}

// unanswered checks a method that is not registered.
func (g *routeCheck) wantNoRoute(method, path string) {
	g.t.Helper()
	answer := g.anonymous.Ask(method, path, "")
	telling := method == http.MethodOptions && answer.StatusCode == http.StatusNoContent
	if !telling && (answer.StatusCode < 400 || answer.StatusCode >= 500) {
		g.t.Errorf("%s %s: %s, and is no route", method, path, answer.Status)
	}
	for name := range answer.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			g.t.Errorf("%s %s: answers %s", method, path, name)
		}
	}
	g.wantHidden(method+" "+path, answer)
}

// hides checks that nothing hidden is in an answer.
func (g *routeCheck) wantHidden(what string, answer Response) {
	g.t.Helper()
	for _, secret := range g.hidden {
		if strings.Contains(answer.Text, secret) {
			g.t.Errorf("%s: shows %q", what, secret)
		}
	}
}

// admitted checks that those who may see a route do: otherwise refusing the
// others would prove nothing.
func (g *routeCheck) wantAdmitted(method, path string, access Access) {
	g.t.Helper()
	who := g.user
	if access == Public {
		who = g.anonymous
		g.wantHidden(method+" "+path, who.Ask(method, path, "", Navigation...))
	}
	response := who.Stream(method, path, Navigation...) // some are streams
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized || strings.HasPrefix(response.Header.Get("Location"), "/auth/login") {
		g.t.Errorf("%s %s: %s to %q, and is for %s", method, path, response.Status, response.Header.Get("Location"), access)
	}
}
