package web_test

import (
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// Argo Workflows accepted "Bearer nothing" as a user on some routes
// (CVE-2026-28229), and Grafana a placeholder's name as an address (CVE-2021-39226).
func TestRoutes(t *testing.T) {
	t.Parallel()
	webtest.CheckRoutes(t, start(t, webtest.Setup{}).Console, map[string]webtest.Access{
		"GET /static/*": webtest.Public, "HEAD /static/*": webtest.Public,
		"GET /auth/login": webtest.Public, "GET /auth/callback": webtest.Public, "POST /auth/logout": webtest.Public,
		"GET /auth/signed-out": webtest.Public, "HEAD /auth/signed-out": webtest.Public,
		"GET /auth/command-line.json": webtest.Public, "HEAD /auth/command-line.json": webtest.Public,
		"GET /open": webtest.Public, "HEAD /open": webtest.Public,
		"GET /auth/session": webtest.SignedIn, "GET /auth/signed-in": webtest.SignedIn, "HEAD /auth/signed-in": webtest.SignedIn,
		"GET /who": webtest.SignedIn, "HEAD /who": webtest.SignedIn,
		"GET /me": webtest.SignedIn, "HEAD /me": webtest.SignedIn, "GET /me/events": webtest.SignedIn,
		"GET /write": webtest.SignedIn, "HEAD /write": webtest.SignedIn, "POST /write": webtest.SignedIn,
		"GET /form": webtest.SignedIn, "HEAD /form": webtest.SignedIn, "POST /form": webtest.SignedIn,
		"GET /form/other": webtest.SignedIn, "HEAD /form/other": webtest.SignedIn, "POST /form/other": webtest.SignedIn,
		"GET /panic": webtest.SignedIn, "HEAD /panic": webtest.SignedIn,
		"GET /broken": webtest.SignedIn, "HEAD /broken": webtest.SignedIn,
		"GET /away": webtest.SignedIn, "HEAD /away": webtest.SignedIn,
		"GET /late": webtest.SignedIn, "HEAD /late": webtest.SignedIn,
		"GET /stream/events": webtest.SignedIn,
		webtest.Unknown:      webtest.SignedIn,
	}, "you are", "typed:", "fields", "event:")
}
