package web_test

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"

	"github.com/go-jose/go-jose/v4"
)

// An answer of the provider is accepted once, in the browser that started the
// sign-in, and within the time limit.
func TestAnswersWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *console, *webtest.Browser, string) string // returns the address to open
	}{
		"no attempt in this browser": {func(t *testing.T, c *console, _ *webtest.Browser, _ string) string {
			_, callback := begin(t, c.Browser(t), "/me")
			return callback
		}},
		"an attempt cookie under another state's name": {func(t *testing.T, c *console, b *webtest.Browser, own string) string {
			_, callback := begin(t, c.Browser(t), "/me")
			b.SetCookies(&http.Cookie{Name: "kuota-signin-" + state(callback)[:8], Value: b.Cookie("kuota-signin-" + state(own)[:8]).Value, Path: "/"})
			return callback
		}},
		"an attempt of another key": {func(t *testing.T, c *console, b *webtest.Browser, own string) string {
			sealed, err := webtest.NewRing(t, webtest.NewKey()).Seal("kuota-signin-", []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			b.SetCookies(&http.Cookie{Name: "kuota-signin-" + state(own)[:8], Value: sealed, Path: "/"})
			return own
		}},
		"eleven minutes later": {func(_ *testing.T, c *console, _ *webtest.Browser, own string) string {
			c.Clock.Advance(11 * time.Minute)
			return own
		}},
		"a state that begins the same": {func(_ *testing.T, _ *console, _ *webtest.Browser, own string) string {
			return strings.Replace(own, state(own), state(own)[:8]+"AAAAAAAAAAAAAAAAAA", 1)
		}},
		"no state":        {func(*testing.T, *console, *webtest.Browser, string) string { return "/auth/callback?code=x" }},
		"an empty answer": {func(*testing.T, *console, *webtest.Browser, string) string { return "/auth/callback" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, webtest.Setup{})
			b := c.Browser(t)
			_, own := begin(t, b, "/me")
			answer := b.Ask(http.MethodGet, tc.prepare(t, c, b, own), "", webtest.Navigation...)
			page := htmlcheck.Parse(t, answer.Text)
			htmlcheck.Page(t, page)
			if answer.StatusCode != http.StatusBadRequest || page.Find(`a[href^="/auth/login"]`).Length() != 1 {
				t.Errorf("the answer is %s: %s", answer.Status, page.Find("main").Text())
			}
			if b.Cookie("kuota") != nil || len(c.Store.Names()) != 0 || c.Provider.Requested("/token") != 0 {
				t.Error("the answer was taken")
			}
		})
	}
}

func state(callback string) string {
	address, _ := url.Parse(callback)
	return address.Query().Get("state")
}

// A replayed answer, with all cookies of the browser, signs no one in, even if the
// provider accepts a code twice.
func TestReplayedAnswer(t *testing.T) {
	t.Parallel()
	for name, twice := range map[string]bool{"codes are good once": false, "codes are good twice": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, webtest.Setup{})
			b := c.Browser(t)
			login, callback := begin(t, b, "/me")
			if twice {
				takeAnyCode(c, login.Header.Get("Location"))
			}
			thief := c.Browser(t)
			thief.SetCookies(b.Cookies()...)
			if b.Ask(http.MethodGet, callback, ""); b.Cookie("kuota") == nil {
				t.Fatal("not signed in")
			}
			answer := thief.Ask(http.MethodGet, callback, "", webtest.Navigation...)
			if want := map[bool]int{false: http.StatusForbidden, true: http.StatusBadRequest}[twice]; answer.StatusCode != want || thief.Cookie("kuota") != nil {
				t.Errorf("played again it answers %s, want %d: %s", answer.Status, want, answer.Text)
			}
			if c.Provider.Requested("/token") != 2 {
				t.Error("the second answer did not get as far as the provider")
			}
			// A reload of the address finds the user signed in already.
			if answer := b.Ask(http.MethodGet, callback, "", webtest.Navigation...); answer.Header.Get("Location") != "/" || b.Open("/me").StatusCode != http.StatusOK {
				t.Errorf("reloaded it answers %s to %s", answer.Status, answer.Header.Get("Location"))
			}
		})
	}
}

// takeAnyCode makes the provider accept any code, any number of times, for the
// sign-in that began with this address.
func takeAnyCode(c *console, authorize string) {
	address, _ := url.Parse(authorize)
	c.Provider.Change(func(b *signintest.Behavior) {
		b.Token = func(w http.ResponseWriter, _ url.Values) bool {
			w.Header().Set("Content-Type", "application/json")
			token := signintest.SignWith(b.Keys[0], jose.RS256, map[string]any{
				"iss": c.Provider.Issuer, "aud": signintest.ClientID, "sub": "1234", "email": "ada@example.com", "groups": []string{"vision-team"},
				"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "nonce": address.Query().Get("nonce"),
			})
			_, _ = w.Write([]byte(`{"access_token": "canary-access", "token_type": "Bearer", "refresh_token": "canary-refresh", "id_token": "` + token + `"}`))
			return true
		}
	})
}

func TestTwoTabsSignIn(t *testing.T) {
	t.Parallel()
	for name, firstEndsFirst := range map[string]bool{"in the order they began": true, "the second first": false} {
		t.Run(name, func(t *testing.T) {
			c := start(t, webtest.Setup{})
			b := c.Browser(t)
			_, first := begin(t, b, "/me?tab=1")
			_, second := begin(t, b, "/me?tab=2")
			order, want := []string{first, second}, []string{"/me?tab=1", "/me?tab=2"}
			if !firstEndsFirst {
				order, want = []string{second, first}, []string{"/me?tab=2", "/me?tab=1"}
			}
			for i, callback := range order {
				if answer := b.Ask(http.MethodGet, callback, "", webtest.Navigation...); answer.Header.Get("Location") != want[i] {
					t.Errorf("it leads to %q, want %s", answer.Header.Get("Location"), want[i])
				}
				if answer := b.Ask(http.MethodGet, "/me", "", webtest.Navigation...); answer.StatusCode != http.StatusOK {
					t.Errorf("then a page is %s", answer.Status)
				}
			}
			if left := len(c.Store.Names()); left != 1 {
				t.Errorf("%d sessions are left of one browser", left)
			}
		})
	}
}

// Many tabs with unfinished sign-ins do not exceed the limit of request headers.
func TestManyUnfinishedSignIns(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t)
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~&=%C3%A4"
	for range 10 {
		long := []byte("/me?")
		for len(long) < 2000 {
			long = append(long, letters[rand.IntN(len(letters)-6)])
		}
		begin(t, b, string(long))
		for _, cookie := range b.Cookies() {
			if size := len(cookie.Name) + len(cookie.Value); size > 4096 {
				t.Fatalf("a cookie of %d bytes, which no browser keeps", size)
			}
		}
		if size := cookieHeader(b); size > 16<<10 {
			t.Fatalf("the browser sends %d bytes of cookies", size)
		}
	}
	if answer := b.Open("/me"); answer.StatusCode != http.StatusOK {
		t.Errorf("then signing in answers %s", answer.Status)
	}
}
