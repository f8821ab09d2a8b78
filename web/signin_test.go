package web_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"
)

// begin starts a sign-in, and returns the callback address.
func begin(t *testing.T, b *webtest.Browser, back string, headers ...string) (login webtest.Response, callback string) {
	t.Helper()
	login = b.Ask(http.MethodGet, "/auth/login?return="+url.QueryEscape(back), "", append(headers, webtest.Navigation...)...)
	if login.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in begins with %s", login.Status)
	}
	callback = b.Ask(http.MethodGet, login.Header.Get("Location"), "").Header.Get("Location")
	if !strings.Contains(callback, "/auth/callback?") {
		t.Fatalf("the provider leads back to %s", callback)
	}
	return login, callback
}

func TestSignInLeadsToThePageAskedFor(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	const path = "/me?tab=2&name=%2Fa%20b%26c&tab=3"
	answer := c.Browser(t).Open(path)
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Text, `ada@example.com of 1 groups ["vision-team"] from 127.0.0.1.`) {
		t.Fatalf("the page is %s: %s", answer.Status, answer.Text)
	}
	if got := answer.Request.URL.String(); got != c.URL+path {
		t.Errorf("sign-in leads to %s, want %s", got, c.URL+path)
	}
}

// Over TLS, no other host and no plain HTTP page can set the console's cookies.
func TestCookies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tls          bool
		base, prefix string
		wantPath     string
	}{
		"without TLS": {wantPath: "/"}, "over TLS": {tls: true, prefix: "__Host-", wantPath: "/"},
		"without TLS, with a base path": {base: "/apps/kuota", wantPath: "/apps/kuota"},
		"over TLS, with a base path":    {tls: true, base: "/apps/kuota", prefix: "__Secure-", wantPath: "/apps/kuota"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, webtest.Setup{TLS: tc.tls, Base: tc.base}).Browser(t)
			login, callback := begin(t, b, "/me")
			made := append(login.Cookies(), b.Ask(http.MethodGet, callback, "").Cookies()...)
			form := b.At(start(t, webtest.Setup{TLS: tc.tls, Base: tc.base}).Console).Post("/form", url.Values{"a": {"b"}}) // signed in elsewhere
			made = append(made, form.Cookies()...)
			var names []string
			for _, cookie := range made {
				kind := strings.TrimPrefix(cookie.Name, tc.prefix)
				names = append(names, strings.TrimRight(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
				if !strings.HasPrefix(cookie.Name, tc.prefix+"kuota") || !cookie.HttpOnly || cookie.Secure != tc.tls || cookie.Path != tc.wantPath ||
					cookie.Domain != "" || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge == 0 || len(cookie.Value) > 4000 {
					t.Errorf("the cookie is %s", cookie.Raw)
				}
			}
			if got := strings.Join(names, " "); got != "kuota-signin- kuota-signin- kuota kuota-draft" {
				t.Errorf("cookies are %s", got)
			}
		})
	}
}

// A session that an attacker planted in a browser is not the one that the user gets.
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	attacker := c.Browser(t).SignIn()
	for name, planted := range map[string]string{"an id of theirs": attacker.Cookie("kuota").Value, "an id of nobody": strings.Repeat("A", 52)} {
		victim := c.Browser(t)
		victim.SetCookies(&http.Cookie{Name: "kuota", Value: planted, Path: "/"})
		victim.Open("/auth/login?return=/me")
		if got := victim.Cookie("kuota").Value; got == planted || victim.Open("/me").StatusCode != http.StatusOK {
			t.Errorf("%s: after signing in it is still there", name)
		}
		thief := c.Browser(t)
		thief.SetCookies(&http.Cookie{Name: "kuota", Value: planted, Path: "/"})
		if answer := thief.Ask(http.MethodGet, "/me", ""); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: opens %s: %s", name, answer.Status, answer.Text)
		}
	}
}

func TestRefusedSignIn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*signintest.Behavior){
		"a name that Kubernetes keeps for itself": func(b *signintest.Behavior) { b.Claims["email"] = "system:admin" },
		"an unverified address":                   func(b *signintest.Behavior) { b.Claims["email_verified"] = false },
		"access denied": func(b *signintest.Behavior) {
			b.ChangeAuthorizeResponse = func(a url.Values) { a.Set("error", "access_denied") }
		},
		"another audience": func(b *signintest.Behavior) { b.ChangeClaims = func(c map[string]any) { c["aud"] = "another" } },
		"another nonce":    func(b *signintest.Behavior) { b.ChangeClaims = func(c map[string]any) { c["nonce"] = "another" } },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, webtest.Setup{})
			c.Provider.Change(change)
			b := c.Browser(t)
			answer := b.Open("/me?a=b")
			page := htmlcheck.Parse(t, answer.Text)
			htmlcheck.Page(t, page)
			if answer.StatusCode != http.StatusForbidden || page.Find(`a[href="/auth/login?return=%2Fme%3Fa%3Db"]`).Length() != 1 {
				t.Errorf("the answer is %s: %s", answer.Status, page.Find("main").Text())
			}
			if b.Cookie("kuota") != nil || len(c.Store.Names()) != 0 {
				t.Error("there is a session")
			}
		})
	}
}

func TestProviderDownAtSignIn(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	away(c, true)
	b := c.Browser(t)
	answer := b.Open("/me?a=b")
	page := htmlcheck.Parse(t, answer.Text)
	htmlcheck.Page(t, page)
	if answer.StatusCode != http.StatusServiceUnavailable || page.Find(`a[href="/auth/login?return=%2Fme%3Fa%3Db"]`).Text() != "Try again" {
		t.Errorf("the answer is %s: %s", answer.Status, page.Find("main").Text())
	}
	away(c, false)
	wait(t, "signing in works again", 5*time.Second, func() bool { return b.Open("/me").StatusCode == http.StatusOK })
}

// A confirmation is valid for five minutes. After that, a user who cannot be
// confirmed sees nothing, but is not signed out.
func TestProviderDownForSignedInUser(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	away(c, true)
	c.Clock.Advance(4*time.Minute + 30*time.Second)
	if answer := b.Open("/me"); answer.StatusCode != http.StatusOK {
		t.Errorf("within five minutes the answer is %s", answer.Status)
	}
	c.Clock.Advance(time.Minute)
	wait(t, "the page is refused", 5*time.Second, func() bool { return b.Open("/me?a=b").StatusCode != http.StatusOK })
	answer := b.Open("/me?a=b")
	page := htmlcheck.Parse(t, answer.Text)
	if answer.StatusCode != http.StatusServiceUnavailable || page.Find(`a[href="/me?a=b"]`).Text() != "Try again" || strings.Contains(answer.Text, "ada@") {
		t.Errorf("beyond five minutes the answer is %s: %s", answer.Status, page.Find("main").Text())
	}
	if b.Ask(http.MethodGet, "/me", "", webtest.Script...).StatusCode != http.StatusServiceUnavailable || b.Cookie("kuota") == nil || len(c.Store.Names()) != 1 {
		t.Error("the person is signed out")
	}
	away(c, false)
	c.Clock.Advance(6 * time.Second)
	if answer := b.Ask(http.MethodGet, "/me", "", webtest.Navigation...); answer.StatusCode != http.StatusOK {
		t.Errorf("once the provider is back the answer is %s", answer.Status)
	}
}

// Many users share one address, and one address cannot lock the others out.
func TestSignInRate(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	b := c.Browser(t)
	from := func(address, path string) webtest.Response {
		return b.Ask(http.MethodGet, path, "", "X-Forwarded-For", address)
	}
	for path, addresses := range map[string]map[string]string{ // and a neighbor of each
		"/auth/login":                  {"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::ffff:2"},
		"/auth/callback?state=nothing": {"192.0.2.3": "192.0.2.3", "2001:db8:3::1": "2001:db8:3::ffff:2"},
	} {
		for address, neighbor := range addresses {
			answer := from(address, path)
			began := 1
			for ; answer.StatusCode != http.StatusTooManyRequests && began < 2000; began++ {
				answer = from(address, path)
			}
			if began < 30 || began == 2000 || answer.Header.Get("Retry-After") == "" {
				t.Errorf("%s of %s: after %d tries %s, Retry-After %q", path, address, began, answer.Status, answer.Header.Get("Retry-After"))
			}
			own := 0 // what the neighbor may still ask: some, where the machine is slow and time passes, and not a burst of its own
			for ; from(neighbor, path).StatusCode != http.StatusTooManyRequests && own < 100; own++ {
			}
			if own == 100 {
				t.Errorf("%s of %s, which is the same network as %s, has a limit of its own", path, neighbor, address)
			}
		}
	}
	for _, address := range []string{"192.0.2.2", "2001:db8:0:1::1"} {
		if got := from(address, "/auth/login").StatusCode; got != http.StatusSeeOther {
			t.Errorf("another address, %s, gets %d", address, got)
		}
	}
	if log := c.Log.String(); !strings.Contains(log, `msg="sign-in rejected: too many from this address" from=`) {
		t.Errorf("the log does not contain the rejection:\n%s", log)
	}
}

func TestFiveThousandGroups(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	groups := make([]string, 5000)
	for i := range groups {
		groups[i] = fmt.Sprintf("8f14e45f-ceea-467f-9575-%012d", i)
	}
	c.Provider.Change(func(b *signintest.Behavior) { b.Claims["groups"] = groups })
	b := c.Browser(t)
	if answer := b.Open("/me"); !strings.HasPrefix(answer.Text, "ada@example.com of 5000 groups") {
		t.Errorf("the page is %s: %.200s", answer.Status, answer.Text)
	}
	if size := cookieHeader(b); size > 200 {
		t.Errorf("the browser sends %d bytes of cookies", size)
	}
	if answer := b.Post("/auth/logout", nil); answer.StatusCode != http.StatusOK || len(answer.Text) > 20_000 {
		t.Errorf("signing out answers %s with %d bytes", answer.Status, len(answer.Text))
	}
}

// cookieHeader returns the size of all cookies in a header, in bytes.
func cookieHeader(b *webtest.Browser) (size int) {
	for _, cookie := range b.Cookies() {
		size += len(cookie.Name) + len(cookie.Value) + len("=; ")
	}
	return size
}
