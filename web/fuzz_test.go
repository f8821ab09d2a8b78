package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// fuzzed is a console for many sign-ins, each from another address.
type fuzzed struct {
	*console
	next atomic.Uint32
}

func fuzzing(f *testing.F) *fuzzed {
	f.Helper()
	return &fuzzed{console: start(f, webtest.Setup{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})}
}

// from returns a header with a client address that was never used before.
func (c *fuzzed) from() []string {
	n := c.next.Add(1)
	return []string{"X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)}
}

// ask sends a request with any target and headers of one line. It returns nil if the
// answer is not HTTP.
func (c *fuzzed) ask(t *testing.T, target string, headers ...string) (*http.Response, string) {
	t.Helper()
	line := strings.NewReplacer("\r", " ", "\n", " ")
	request := "GET " + line.Replace(target) + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(c.URL, "http://") + "\r\nConnection: close\r\n"
	for i := 0; i < len(headers); i += 2 {
		request += headers[i] + ": " + line.Replace(headers[i+1]) + "\r\n"
	}
	text := exchange(t, c.URL, request+"\r\n")
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("%q answers %q: %v", request, text, err)
	}
	response.Body.Close() // text contains it
	return response, text
}

// No cookie signs a browser in, or breaks a page.
func FuzzCookie(f *testing.F) {
	c := fuzzing(f)
	for _, seed := range []string{
		"", "x", strings.Repeat("A", 52), strings.Repeat("A", 51) + "\x00", "a.b.c.d.e", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAAAAAAAAAAAAAA..AAAAAAAAAAAAAAAAAAAAAA",
		`"quoted"`, "a=b; kuota=c", "; kuota=; kuota=", "\xff\xfe", "../../etc/passwd", strings.Repeat("a", 5000), "=", ";;;", "%00", "null", "[]", "{}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, cookie := range []string{"kuota=" + value, value, "kuota=" + value + "; kuota=" + value, "__Host-kuota=" + value} {
			for _, path := range []string{"/me", "/me/events", "/auth/session"} {
				if response, text := c.ask(t, path, "Cookie", cookie); response.StatusCode < 400 || response.StatusCode >= 500 {
					t.Errorf("%s with %q: %s", path, cookie, text)
				}
			}
		}
		attempt := "kuota-signin-AAAAAAAA=" + value
		if response, text := c.ask(t, "/auth/callback?code=x&state=AAAAAAAAAAAAAAAAAAAAAAAAAA", append(c.from(), "Cookie", attempt)...); response.StatusCode < 400 || response.StatusCode >= 500 {
			t.Errorf("an answer with %q: %s", attempt, text)
		}
		b := c.Browser(t)
		_, callback := begin(t, b, "/me", c.from()...)
		id := b.Ask(http.MethodGet, callback, "", c.from()...).Cookies()[1].Value
		draft := "kuota=" + id + "; kuota-draft=" + value
		// A value can contain the session's cookie again, which is refused, or zero bytes,
		// which no header may contain.
		if response, text := c.ask(t, "/form", "Cookie", draft); response.StatusCode >= 500 || response.StatusCode == http.StatusOK && !strings.HasSuffix(text, "0 fields: ") {
			t.Errorf("a form with %q: %s", draft, text)
		}
	})
}

// No link to the sign-in leads to another site, or breaks the sign-in.
func FuzzQuery(f *testing.F) {
	c := fuzzing(f)
	for _, seed := range []string{
		"", "return=/me", "return=//evil.example", "return=https://evil.example", "return=%0d%0aLocation:%20https://evil.example", "return=/\\evil.example", "return[]=/me", "return", "&&&", ";", "%", "%zz=%zz",
		"state=", "state=AAAAAAAA", "state=%00%00%00%00%00%00%00%00", "state=;;;;;;;;", "state========&code=", "code=x", "code=x&code=y", "error=access_denied", "error=<script>&error_description=%ff",
		"iss=https://evil.example", "iss=&iss=", "code=x&iss=", "state=" + strings.Repeat("a", 5000), strings.Repeat("a=b&", 2000), "redirect_uri=https://evil.example/", "\xff\xfe", "a=\x00", " HTTP/1.1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		check := func(what string, response *http.Response, text string) {
			t.Helper()
			if response.StatusCode >= 500 {
				t.Errorf("%s: %s", what, text)
			}
			to := response.Header.Get("Location")
			if to == "" {
				return
			}
			if address, err := url.Parse(to); err == nil && strings.HasPrefix(to, c.Provider.Issuer+"/authorize?") && address.Query().Get("redirect_uri") == c.URL+"/auth/callback" {
				return
			}
			if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to[:min(len(to), 2)], `\`) {
				t.Errorf("%s leads to %q", what, to)
			}
		}
		for _, path := range []string{"/auth/login", "/auth/callback"} {
			response, text := c.ask(t, path+"?"+query, c.from()...)
			check(path, response, text)
		}
		for _, first := range []bool{true, false} { // an answer to a pending sign-in
			b := c.Browser(t)
			_, callback := begin(t, b, "/me", c.from()...)
			answer := "/auth/callback?" + query + "&state=" + state(callback)
			if first {
				answer = "/auth/callback?state=" + state(callback) + "&" + query
			}
			cookie := b.Cookie("kuota-signin-" + state(callback)[:8])
			response, text := c.ask(t, answer, append(c.from(), "Cookie", cookie.String())...)
			check(answer, response, text)
		}
	})
}
