package web_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// oauth2-proxy accepted anyone who sent the expected header (CVE-2026-40575), or the
// header with underscores (CVE-2025-64484). Only the session identifies a user.
func TestForgedIdentityHeaders(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	b, stranger := c.Browser(t).SignIn(), c.Browser(t)
	claims := map[string]string{
		"X-Forwarded-User": "eve", "X-Forwarded-Email": "eve", "X-Forwarded-Groups": "system:masters", "X-Forwarded-Preferred-Username": "eve",
		"X-Forwarded-Access-Token": "eve", "Remote-User": "eve", "X-Remote-User": "eve", "X-Remote-Group": "system:masters", "X-Webauth-User": "eve",
		"X-Auth-Request-User": "eve", "X-Auth-Request-Email": "eve", "Impersonate-User": "eve", "Impersonate-Group": "system:masters",
		"X-Forwarded-Uri": "/static/favicon.svg", "X-Original-URL": "/static/favicon.svg", "X-Rewrite-URL": "/static/favicon.svg", "X-Original-URI": "/open",
		"X-Forwarded-Prefix": "/static", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "for=10.0.0.1;host=evil.example",
		"X-HTTP-Method-Override": "GET", "X-Method-Override": "HEAD", "Authorization": "Bearer nothing", "X-Api-Key": "eve", "Kuota": "eve",
		"X-Client-Cert": "eve", "Ssl-Client-S-Dn": "CN=eve", "X-Forwarded-Client-Cert": "Subject=eve", "X-Forwarded-For": "10.0.0.1",
	}
	for name, value := range claims {
		for how, headers := range map[string][]string{
			"as it is":          {name, value},
			"in small letters":  {strings.ToLower(name), value},
			"in capitals":       {strings.ToUpper(name), value},
			"with underscores":  {strings.ReplaceAll(name, "-", "_"), value},
			"twice":             {name, value, name, "ada@example.com"},
			"twice, and oddly":  {name, "", strings.ToLower(name), value},
			"for the next hop":  {name, value, "Connection", name},
			"instead of cookie": {name, value, "Connection", "Cookie, " + name},
		} {
			for path, method := range map[string]string{"/me": "GET", "/me/events": "GET", "/auth/session": "GET", "/form": "POST", "/nowhere": "GET"} {
				if answer := stranger.Ask(method, path, "", headers...); answer.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s %s with %s %s: %s", method, path, name, how, answer.Status)
				}
			}
			if answer := b.Ask(http.MethodGet, "/me", "", headers...); !strings.HasPrefix(answer.Text, `ada@example.com of 1 groups ["vision-team"]`) {
				t.Errorf("with %s %s a signed-in user is %s: %s", name, how, answer.Status, answer.Text)
			}
		}
	}
	if c.posts() != 0 {
		t.Error("something was saved")
	}
}

// The client address comes from a configured proxy, as far as it reports one.
// Headers of other clients are ignored.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	const us, them = "127.0.0.1", "192.0.2.7"
	for name, tc := range map[string]struct {
		proxies string
		headers []string
		want    string
	}{
		"without proxies":                         {"", []string{"X-Forwarded-For", them}, us},
		"other headers, without proxies":          {"", []string{"X-Real-Ip", them, "Forwarded", "for=" + them, "X-Client-Ip", them}, us},
		"a proxy that is not this one":            {"10.0.0.0/8", []string{"X-Forwarded-For", them}, us},
		"a proxy":                                 {"127.0.0.1/32", []string{"X-Forwarded-For", them}, them},
		"a proxy of IPv6":                         {"127.0.0.1/32", []string{"X-Forwarded-For", "2001:db8::1"}, "2001:db8::1"},
		"a proxy that says nothing":               {"127.0.0.1/32", nil, us},
		"a proxy that says something else":        {"127.0.0.1/32", []string{"X-Real-Ip", them, "Forwarded", "for=" + them, "True-Client-Ip", them}, us},
		"what the sender wrote before":            {"127.0.0.1/32", []string{"X-Forwarded-For", "10.1.1.1, " + them}, them},
		"what the sender wrote in its own header": {"127.0.0.1/32", []string{"X-Forwarded-For", "10.1.1.1", "X-Forwarded-For", them}, them},
		"two proxies":                             {"127.0.0.1/32 10.0.0.0/8", []string{"X-Forwarded-For", "10.9.9.9, " + them + ", 10.1.1.1"}, them},
		"what is no address":                      {"127.0.0.1/32", []string{"X-Forwarded-For", them + ", <b>"}, us},
		"an address with a port":                  {"127.0.0.1/32", []string{"X-Forwarded-For", them + ":80"}, us},
		"all networks":                            {"0.0.0.0/0", []string{"X-Forwarded-For", "10.9.9.9, " + them}, "10.9.9.9"},
	} {
		t.Run(name, func(t *testing.T) {
			var proxies []netip.Prefix
			for _, proxy := range strings.Fields(tc.proxies) {
				proxies = append(proxies, netip.MustParsePrefix(proxy))
			}
			b := start(t, webtest.Setup{Proxies: proxies}).Browser(t).SignIn()
			if answer := b.Ask(http.MethodGet, "/me", "", tc.headers...); !strings.HasSuffix(answer.Text, " from "+tc.want+".") {
				t.Errorf("the request is %q, want %s", answer.Text, tc.want)
			}
		})
	}
}

// A request for another host name (DNS rebinding, cache confusion) is refused
// unread.
func TestHost(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	own := strings.TrimPrefix(c.URL, "http://")
	port := own[strings.LastIndex(own, ":"):]
	for _, host := range []string{
		"evil.example", "evil.example" + port, "localhost" + port, "127.0.0.1", "127.0.0.1:1", "127.0.0.1." + port, own + ".evil.example", "127.0.0.1.evil.example" + port,
		"[::1]" + port, "2130706433" + port, "127.1" + port, own + "/", own + "?", "127.0.0.1:0" + port[1:],
	} {
		for _, path := range []string{"/me", "/auth/login?return=/me", "/static/favicon.svg", "/auth/signed-out"} {
			answer := b.Ask(http.MethodGet, path, "", "Host", host)
			if answer.StatusCode != http.StatusMisdirectedRequest && answer.StatusCode != http.StatusBadRequest || len(answer.Header.Values("Location")) != 0 || len(answer.Cookies()) != 0 {
				t.Errorf("%s of %s: %s to %s", path, host, answer.Status, answer.Header.Get("Location"))
			}
			if strings.Contains(answer.Text, "evil") || strings.Contains(answer.Text, "ada@") {
				t.Errorf("%s of %s: %s", path, host, answer.Text)
			}
		}
	}
	for name, headers := range map[string][]string{"another name": {"X-Forwarded-Host", "evil.example"}, "another port": {"X-Forwarded-Port", "1"}, "both": {"Forwarded", "host=evil.example"}} {
		login := b.Ask(http.MethodGet, "/auth/login", "", headers...)
		if !strings.Contains(login.Header.Get("Location"), "redirect_uri=http%3A%2F%2F127.0.0.1%3A"+port[1:]+"%2Fauth%2Fcallback&") {
			t.Errorf("%s leads on to %s", name, login.Header.Get("Location"))
		}
	}
}
