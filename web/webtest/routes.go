package webtest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Access is who may open a route.
type Access string

// All values of Access.
const (
	SignedIn Access = "signed-in users"
	Public   Access = "everyone"
)

// Unknown is the key of the route for addresses without a route.
const Unknown = echo.RouteNotFound + " /*"

// parameter matches the parameters of a route.
var parameter = regexp.MustCompile(`:[^/]+|\*`)

// CheckRoutes checks every route against table, whose keys are like "GET /tasks".
// A route that is not in the table fails. Routes for signed-in users must reject
// all invalid credentials without showing any of hidden.
func CheckRoutes(t *testing.T, c *Console, table map[string]Access, hidden ...string) {
	t.Helper()
	g := &routeCheck{t: t, c: c, user: c.Browser(t).SignIn(), anonymous: c.Browser(t), hidden: append(hidden, "ada@example.com")}
	g.anonymous.client.Jar = nil
	pretenders := c.invalidCredentials(t)
	seen := map[string][]string{} // methods by path
	for _, route := range c.Routes() {
		key := route.Method + " " + route.Path
		if strings.HasPrefix(route.Path, web.APIPrefix+"/") {
			g.wantToken(route.Method, parameter.ReplaceAllString(route.Path, "x"), pretenders)
			continue
		}
		access, known := table[key]
		if !known {
			t.Errorf("%s is not in the table: add who may open it", key)
			continue
		}
		method := route.Method
		if key == Unknown {
			method = http.MethodGet
		}
		// A parameter spelled as in the route is an address as well (CVE-2021-39226).
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
			t.Errorf("%s is in the table but is not a route", key)
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

// routeCheck checks the routes of a console.
type routeCheck struct {
	t               *testing.T
	c               *Console
	user, anonymous *Browser // signed in and not
	hidden          []string // text that anonymous users must not see
}

// wantToken checks that an endpoint of the API takes no session, and no wrong token.
func (g *routeCheck) wantToken(method, path string, pretenders map[string][]string) {
	g.t.Helper()
	for who, answer := range map[string]Response{"a session": g.user.Ask(method, path, "", Script...), "a page": g.user.Ask(method, path, "", Navigation...), "nobody": g.anonymous.Ask(method, path, "")} {
		if answer.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
			g.t.Errorf("%s %s with %s: %s of %s, want a problem with 401", method, path, who, answer.Status, answer.Header.Get("Content-Type"))
		}
	}
	for who, headers := range pretenders {
		if answer := g.anonymous.Ask(method, path, "", headers...); answer.StatusCode != http.StatusUnauthorized {
			g.t.Errorf("%s %s with %s: %s, want 401", method, path, who, answer.Status)
		}
	}
}

// wantRejected checks that headers do not authenticate a request.
func (g *routeCheck) wantRejected(method, path, who string, headers []string) {
	g.t.Helper()
	for how, sent := range map[string][]string{"page": Navigation, "script": Script, "program": nil} {
		answer := g.anonymous.Ask(method, path, "", slices.Concat(sent, headers)...)
		want := http.StatusUnauthorized
		if how == "page" && (method == http.MethodGet || method == http.MethodHead) {
			want = http.StatusSeeOther
		}
		if answer.StatusCode != want {
			g.t.Errorf("%s %s by a %s with %s: %s, want %d", method, path, how, who, answer.Status, want)
		}
		if to := answer.Header.Get("Location"); want == http.StatusSeeOther && !strings.HasPrefix(to, "/auth/login?return=") {
			g.t.Errorf("%s %s by a %s with %s: redirects to %s", method, path, how, who, to)
		}
		g.wantHidden(method+" "+path+" by a "+how+" with "+who, answer)
	}
}

// wantNoRoute checks that a method is not handled.
func (g *routeCheck) wantNoRoute(method, path string) {
	g.t.Helper()
	answer := g.anonymous.Ask(method, path, "")
	options := method == http.MethodOptions && answer.StatusCode == http.StatusNoContent
	if !options && (answer.StatusCode < 400 || answer.StatusCode >= 500) {
		g.t.Errorf("%s %s: %s, but it is not a route", method, path, answer.Status)
	}
	for name := range answer.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			g.t.Errorf("%s %s: has header %s", method, path, name)
		}
	}
	g.wantHidden(method+" "+path, answer)
}

// wantHidden checks that the response contains none of hidden.
func (g *routeCheck) wantHidden(what string, answer Response) {
	g.t.Helper()
	for _, secret := range g.hidden {
		if strings.Contains(answer.Text, secret) {
			g.t.Errorf("%s: shows %q", what, secret)
		}
	}
}

// wantAdmitted checks that those with access can open a route: otherwise rejecting
// the others would prove nothing.
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
		g.t.Errorf("%s %s: %s to %q, but it is for %s", method, path, response.Status, response.Header.Get("Location"), access)
	}
}
