package web_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

func TestIsBase(t *testing.T) {
	for base, want := range map[string]bool{
		"": true, "/kuota": true, "/a/b.c_d-e~9": true, "/...": true,
		"/": false, "kuota": false, "/kuota/": false, "//kuota": false, "/a//b": false, "/.": false, "/a/..": false, "/../a": false, "/a/./b": false,
		"/%6b": false, "/a b": false, "/a;b": false, `/a\b`: false, "/a?b": false, "/ä": false, "/a\x00": false,
	} {
		if got := web.IsBase(base); got != want {
			t.Errorf("%q: got %t, want %t", base, got, want)
		}
	}
}

// Under the base path is the whole console, and outside it nothing but probes.
func TestBase(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Base: "/apps/kuota", Register: func(s *web.Server) {
		s.Public("/readyz", func(c echo.Context) error { return c.String(http.StatusOK, "ready") })
	}})
	host := strings.TrimSuffix(c.URL, "/apps/kuota")
	b := c.Browser(t).SignIn()
	for address, want := range map[string]struct {
		status   int
		location string
	}{
		"/apps/kuota/me": {status: http.StatusOK}, "/apps/kuota/open": {status: http.StatusOK}, "/readyz": {status: http.StatusOK},
		"/apps/kuota": {http.StatusSeeOther, "/apps/kuota/"}, "/apps/kuota?a=b": {http.StatusSeeOther, "/apps/kuota/?a=b"},
		"/": {status: http.StatusNotFound}, "/me": {status: http.StatusNotFound}, "/open": {status: http.StatusNotFound}, "/auth/login": {status: http.StatusNotFound}, "/static/css/kuota.css": {status: http.StatusNotFound},
		"/apps": {status: http.StatusNotFound}, "/apps/": {status: http.StatusNotFound}, "/apps/kuotame": {status: http.StatusNotFound}, "/apps/Kuota/me": {status: http.StatusNotFound}, "//apps/kuota/me": {status: http.StatusNotFound},
		"/apps/%6buota/me": {status: http.StatusNotFound}, "/apps%2fkuota/me": {status: http.StatusNotFound}, "/apps/kuota%2fme": {status: http.StatusNotFound}, "/x/../apps/kuota/me": {status: http.StatusNotFound},
		"/apps/kuota/../../me": {status: http.StatusNotFound}, "/apps/kuota/apps/kuota/me": {status: http.StatusNotFound},
	} {
		answer := b.Ask(http.MethodGet, host+address, "", webtest.Navigation...)
		if answer.StatusCode != want.status || answer.Header.Get("Location") != want.location {
			t.Errorf("%s: got %s to %q, want %d to %q", address, answer.Status, answer.Header.Get("Location"), want.status, want.location)
		}
	}
	for _, address := range []string{"/", "/form", "/apps/kuota"} {
		if answer := b.Ask(http.MethodPost, host+address, "a=b", webtest.Navigation...); answer.StatusCode != http.StatusNotFound || c.posts() != 0 {
			t.Errorf("POST %s: got %s", address, answer.Status)
		}
	}
}

// Sign-in, its failures, forms that outlive their session and sign-out keep to the base
// path.
func TestSignInUnderBase(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Base: "/apps/kuota"})
	b := c.Browser(t)
	const path = "/me?tab=2&name=%2Fa%20b%26c"
	first := b.Ask(http.MethodGet, path, "", webtest.Navigation...)
	if got, want := first.Header.Get("Location"), "/apps/kuota/auth/login?return="+url.QueryEscape(path); got != want {
		t.Errorf("without a session, the page leads to %s, want %s", got, want)
	}
	answer := b.Open(path)
	if got := answer.Request.URL.String(); got != c.URL+path || answer.StatusCode != http.StatusOK {
		t.Fatalf("sign-in leads to %s with %s, want %s", got, answer.Status, c.URL+path)
	}
	failed := b.Ask(http.MethodGet, "/auth/callback?state=unknown0", "", webtest.Navigation...)
	if got := failed.Header.Get("Location"); got != "/apps/kuota/" {
		t.Errorf("going back after signing in leads to %q", got)
	}
	missing := b.Open("/none")
	htmlcheck.UnderBase(t, htmlcheck.Parse(t, missing.Text), "/apps/kuota")
	htmlcheck.UnderBase(t, htmlcheck.Parse(t, b.Open("/away").Text), "/apps/kuota")

	out := b.Post("/auth/logout", nil)
	htmlcheck.UnderBase(t, htmlcheck.Parse(t, out.Text), "/apps/kuota")
	if got := out.Header.Values("Clear-Site-Data"); len(got) != 0 {
		t.Errorf("signing out clears %q, which other applications of the host store", got)
	}
	if to := htmlcheck.Parse(t, out.Text).Find("a.btn-primary").AttrOr("href", ""); !strings.Contains(to, url.QueryEscape(c.URL+"/auth/signed-out")) {
		t.Errorf("the provider leads back by %s, want %s", to, c.URL+"/auth/signed-out")
	}
	if b.Cookie("kuota") != nil {
		t.Error("the cookie of the session remains")
	}
	kept := b.Post("/form", url.Values{"a": {"b"}})
	htmlcheck.UnderBase(t, htmlcheck.Parse(t, kept.Text), "/apps/kuota")
	login := htmlcheck.Parse(t, kept.Text).Find(`a[href^="/apps/kuota/auth/login"]`).AttrOr("href", "")
	if again := b.Open(strings.TrimPrefix(login, "/apps/kuota")); again.Request.URL.String() != c.URL+"/form" || again.Text != "1 fields: a=b" {
		t.Errorf("after signing in again: %s at %s", again.Text, again.Request.URL)
	}
}

// What streams send to one reader and to all has the base path too.
func TestStreamsUnderBase(t *testing.T) {
	t.Parallel()
	link := func(context.Context) (templ.Component, error) {
		return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			_, err := io.WriteString(w, string(ui.At(ctx, "/me")))
			return err
		}), nil
	}
	none := func(context.Context) (templ.Component, error) { return templ.NopComponent, nil }
	c := start(t, webtest.Setup{Base: "/apps/kuota", Register: func(s *web.Server) {
		for path, part := range map[string]web.Part{
			"/one/events": {Render: link},
			"/all/events": {Shared: func(context.Context) (string, web.RenderFunc, error) { return "all", link, nil }},
		} {
			s.Events(path, func(c echo.Context) error { return s.Stream(c, part, none) })
		}
	}})
	b := c.Browser(t).SignIn()
	for _, path := range []string{"/one/events", "/all/events"} {
		response := b.Stream(http.MethodGet, path, webtest.Script...)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && !strings.HasSuffix(lines.Text(), "/me") {
		}
		if got := lines.Text(); got != "data: /apps/kuota/me" {
			t.Errorf("%s: got %q", path, got)
		}
		response.Body.Close()
	}
}

// Another origin, host and user are refused as at the root.
func TestChecksUnderBase(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Base: "/apps/kuota"})
	b := c.Browser(t).SignIn()
	if answer := b.Ask(http.MethodPost, "/form", "a=b", "Origin", "https://evil.example"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: got %s", answer.Status)
	}
	if answer := b.Ask(http.MethodGet, "/me", "", "Host", "evil.example"); answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: got %s", answer.Status)
	}
	if answer := b.Ask(http.MethodPost, "/form", "a=b&as=other", webtest.Navigation...); answer.StatusCode != http.StatusConflict || c.posts() != 0 {
		t.Errorf("another user: got %s", answer.Status)
	}
}
