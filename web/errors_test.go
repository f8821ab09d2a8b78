package web_test

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"
)

// inside matches what no page may show: source locations, names of code, and answers
// of other servers.
var inside = regexp.MustCompile(`goroutine|\.go\b|/(?:home|usr|tmp)/|panic|canary|secret|half a page|\*?(web|session|signin|echo|http|errors|runtime)\.[A-Z]|0x[0-9a-f]{6}|` +
	`dial tcp|connection refused|EOF|context canceled|deadline exceeded|as the test wants|invalid_|oauth2|oidc|strconv|unexpected|line \d|JWE|AES`)

// Every error is a page with a sentence for the reader, without internals, and never
// empty.
func TestErrorPagesShowNoInternals(t *testing.T) {
	t.Parallel()
	signedIn := func(_ *testing.T, b *webtest.Browser) { b.SignIn() }
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *webtest.Browser)
		method  string
		path    string
		headers []string
		change  func(*console)
		want    int
	}{
		"not signed in":         {nil, http.MethodGet, "/me", webtest.Script, nil, 401},
		"Page not found":        {signedIn, http.MethodGet, "/nowhere", nil, nil, 404},
		"no such method":        {signedIn, http.MethodDelete, "/me", nil, nil, 405},
		"another site":          {signedIn, http.MethodPost, "/form", []string{"Origin", evil}, nil, 403},
		"another host":          {signedIn, http.MethodGet, "/me", []string{"Host", "evil.example"}, nil, 421},
		"a panic":               {signedIn, http.MethodGet, "/panic", nil, nil, 500},
		"a page that breaks":    {signedIn, http.MethodGet, "/broken", nil, nil, 500},
		"something is away":     {signedIn, http.MethodGet, "/away", nil, nil, 503},
		"an answer of nobody":   {nil, http.MethodGet, "/auth/callback?state=secret&code=canary", nil, nil, 400},
		"too large":             {signedIn, http.MethodPost, "/form", nil, nil, 413},
		"no answer in time":     {signedIn, http.MethodGet, "/late", nil, nil, 503},
		"the store is away":     {signedIn, http.MethodGet, "/me", nil, func(c *console) { c.Store.SetUnavailable(true) }, 503},
		"the provider is away":  {nil, http.MethodGet, "/auth/login", nil, func(c *console) { away(c, true) }, 503},
		"nobody can be checked": {signedIn, http.MethodGet, "/me", nil, func(c *console) { away(c, true); c.Clock.Advance(6 * time.Minute) }, 503},
		"no tokens": {nil, http.MethodGet, "sign in", nil, func(c *console) {
			c.Provider.Change(func(b *signintest.Behavior) { b.Token = echoing(http.StatusBadGateway) })
		}, 503},
		"odd tokens": {nil, http.MethodGet, "sign in", nil, func(c *console) {
			c.Provider.Change(func(b *signintest.Behavior) { b.Token = echoing(http.StatusOK) })
		}, 403},
		"a token of another key": {nil, http.MethodGet, "sign in", nil, func(c *console) {
			c.Provider.Change(func(b *signintest.Behavior) {
				b.Sign = func(map[string]any) string { return "canary.canary.canary" }
			})
		}, 403},
		"sessions cannot be kept": {nil, http.MethodGet, "sign in", nil, func(c *console) { c.Store.SetUnavailable(true) }, 503},
		"Too many sign-ins": {func(_ *testing.T, b *webtest.Browser) {
			for range 1000 {
				b.Ask(http.MethodGet, "/auth/callback", "")
			}
		}, http.MethodGet, "/auth/login", nil, nil, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, webtest.Setup{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
			b, body, path := c.Browser(t), "", tc.path
			if tc.prepare != nil {
				tc.prepare(t, b)
			}
			if path == "sign in" {
				_, path = begin(t, b, "/me")
			}
			if tc.want == http.StatusRequestEntityTooLarge {
				body = strings.Repeat("x", 2<<20)
			}
			if tc.change != nil {
				tc.change(c)
			}
			answer := b.Ask(tc.method, path, body, tc.headers...)
			if answer.StatusCode != tc.want {
				t.Errorf("the answer is %s, want %d", answer.Status, tc.want)
			}
			page := htmlcheck.Parse(t, answer.Text)
			htmlcheck.Page(t, page)
			if found := inside.FindString(page.Find("title, main").Text()); found != "" {
				t.Errorf("the page shows %q: %s", found, page.Text())
			}
			if found := inside.FindString(regexp.MustCompile(`(src|href)="/static/[^"]*"`).ReplaceAllString(answer.Text, "")); found != "" {
				t.Errorf("the page is %q: %s", found, answer.Text)
			}
			for header, values := range answer.Header {
				if found := inside.FindString(strings.Join(values, " ")); found != "" || header == "Server" || header == "X-Powered-By" {
					t.Errorf("%s is %q", header, values)
				}
			}
		})
	}
}

// A path that browsers read as another host does not become the target of Try again.
func TestTryAgainStaysOnThisSite(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	c.Store.SetUnavailable(true)
	answer := b.Ask(http.MethodGet, c.URL+"//evil.example/phish", "", webtest.Navigation...)
	if answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(answer.Text, "evil.example") {
		t.Errorf("%s: %s", answer.Status, answer.Text)
	}
}
