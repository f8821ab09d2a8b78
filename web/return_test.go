package web_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// Sign-in leads to this console, whatever address a link requested.
func TestReturnAddress(t *testing.T) {
	t.Parallel()
	everybody := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	consoles := map[string]*console{}
	for _, base := range []string{"", "/base"} {
		consoles[base] = start(t, webtest.Setup{Proxies: everybody, Base: base})
	}
	next := netip.MustParseAddr("10.0.0.1")
	for name, tc := range map[string]struct{ query, want string }{
		"a page":                           {"return=/me", "/me"},
		"a page with a query":              {"return=" + url.QueryEscape("/me?a=b&c=%2F"), "/me?a=b&c=%2F"},
		"a page in other letters":          {"return=" + url.QueryEscape("/tëams/日本"), "/t%C3%ABams/%E6%97%A5%E6%9C%AC"},
		"letters that look like others":    {"return=" + url.QueryEscape("/\uff0fevil.example"), "/%EF%BC%8Fevil.example"},
		"dots":                             {"return=/../me", "/"},
		"dots further on":                  {"return=/me/..", "/"},
		"encoded dots":                     {"return=/%252e%252E/me", "/"},
		"encoded slashes around dots":      {"return=/a%252f..%252f..%252fme", "/"},
		"dots encoded twice":               {"return=/%25252e%25252e/me", "/%252e%252e/me"},
		"an at sign":                       {"return=/@evil.example", "/@evil.example"},
		"nothing":                          {"", "/"},
		"an empty address":                 {"return=", "/"},
		"another site":                     {"return=https://evil.example/", "/"},
		"another site's host":              {"return=//evil.example", "/"},
		"three slashes":                    {"return=///evil.example", "/"},
		"a backslash":                      {`return=/\evil.example`, "/"},
		"two backslashes":                  {`return=\\evil.example`, "/"},
		"an encoded backslash":             {"return=/%5cevil.example", "/"},
		"a backslash encoded twice":        {"return=/%255cevil.example", "/"},
		"a slash encoded twice":            {"return=/%252fevil.example", "/"},
		"a tab":                            {"return=/%09/evil.example", "/"},
		"a tab encoded twice":              {"return=/%2509/evil.example", "/"},
		"control, invisible":               {"return=/me%0d%0aSet-Cookie:%20kuota=x", "/"},
		"control, invisible encoded twice": {"return=/me%250d%250aSet-Cookie:%20kuota=x", "/"},
		"a zero":                           {"return=/me%00", "/"},
		"a space in front":                 {"return=%20//evil.example", "/"},
		"a script":                         {"return=javascript:alert(1)", "/"},
		"data":                             {"return=data:text/html,x", "/"},
		"a scheme without slashes":         {"return=http:evil.example", "/"},
		"a scheme with one slash":          {"return=https:/evil.example", "/"},
		"a user":                           {"return=//127.0.0.1@evil.example", "/"},
		"no slash":                         {"return=evil.example", "/"},
		"an at sign first":                 {"return=@evil.example", "/"},
		"a question mark first":            {"return=?//evil.example", "/"},
		"a fragment":                       {"return=%23//evil.example", "/"},
		"signing in":                       {"return=/auth/login", "/"},
		"signing in, spelled oddly":        {"return=/%2561uth/login", "/"},
		"the provider's answer":            {"return=/auth/callback?state=x", "/"},
		"two addresses":                    {"return=/me&return=//evil.example", "/me"},
		"two addresses, evil first":        {"return=//evil.example&return=/me", "/"},
		"a long address":                   {"return=/" + strings.Repeat("a", 3000), "/"},
		"an address that just fits":        {"return=/" + strings.Repeat("a", 2000), "/" + strings.Repeat("a", 2000)},
		"an address that cannot be":        {"return=/me%25zz", "/"},
	} {
		for base, c := range consoles {
			t.Run(name+base, func(t *testing.T) {
				next = next.Next() // another client address, to stay below the sign-in limit
				b, from := c.Browser(t), []string{"X-Forwarded-For", next.String()}
				login := b.Ask(http.MethodGet, "/auth/login?"+tc.query, "", from...)
				if !strings.HasPrefix(login.Header.Get("Location"), c.Provider.Issuer+"/authorize?") {
					t.Fatalf("sign-in begins with %s to %s", login.Status, login.Header.Get("Location"))
				}
				callback := b.Ask(http.MethodGet, login.Header.Get("Location"), "").Header.Get("Location")
				answer := b.Ask(http.MethodGet, callback, "", from...)
				if got := answer.Header.Values("Location"); len(got) != 1 || got[0] != base+tc.want {
					t.Errorf("it leads to %q, want %q", got, base+tc.want)
				}
				if cookies := answer.Header.Values("Set-Cookie"); len(cookies) != 2 {
					t.Errorf("cookies are %q", cookies)
				}
			})
		}
	}
}
