package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"
)

// echoing is a token endpoint that repeats the request, as broken ones do.
func echoing(status int) func(http.ResponseWriter, url.Values) bool {
	return func(w http.ResponseWriter, form url.Values) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "canary "+form.Encode()+" "+signintest.ClientSecret)
		return true
	}
}

// refusing is a token endpoint that refuses with a long reason.
func refusing(w http.ResponseWriter, form url.Values) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": "canary " + form.Encode()})
	return true
}

// The log of a full session life, with all its failures, contains no secret.
func TestLogContainsNoSecrets(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	secrets := map[string]string{c.Key: "the ring's key", "canary": "a secret of the provider"}
	keep := func(b *webtest.Browser) {
		for _, cookie := range b.Cookies() {
			secrets[cookie.Value] = "the cookie " + cookie.Name
		}
	}
	signIn := func(want ...int) *webtest.Browser {
		t.Helper()
		b := c.Browser(t)
		login, callback := begin(t, b, "/me")
		address, _ := url.Parse(login.Header.Get("Location"))
		secrets[address.Query().Get("nonce")] = "a nonce"
		back, _ := url.Parse(callback)
		secrets[back.Query().Get("code")], secrets[back.Query().Get("state")] = "a code", "a state"
		keep(b)
		if answer := b.Ask(http.MethodGet, callback, ""); !slices.Contains(want, answer.StatusCode) {
			t.Errorf("signing in answers %s, want one of %d", answer.Status, want)
		}
		keep(b)
		return b
	}
	token := func(answer func(http.ResponseWriter, url.Values) bool) {
		c.Provider.Change(func(b *signintest.Behavior) { b.Token = answer })
	}
	ask := func(b *webtest.Browser, path string, want int) {
		t.Helper()
		if answer := b.Ask(http.MethodGet, path, "", webtest.Script...); answer.StatusCode != want {
			t.Errorf("%s answers %s, want %d", path, answer.Status, want)
		}
		keep(b)
	}
	refreshed := signIn(http.StatusSeeOther)
	c.Clock.Advance(6 * time.Minute)
	ask(refreshed, "/me", http.StatusOK)
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
		token(echoing(status))
		c.Clock.Advance(6 * time.Minute)
		ask(refreshed, "/me", http.StatusServiceUnavailable)
	}
	token(nil)
	c.Clock.Advance(time.Minute)
	ask(refreshed, "/me", http.StatusOK)
	for name, answer := range map[string]func(http.ResponseWriter, url.Values) bool{
		"refused": refusing, "refused in text": echoing(http.StatusBadRequest), "unauthorized": echoing(http.StatusUnauthorized), "no JSON": echoing(http.StatusOK),
	} {
		b := signIn(http.StatusSeeOther)
		token(answer)
		c.Clock.Advance(6 * time.Minute)
		if answer := b.Ask(http.MethodGet, "/me", "", webtest.Script...); answer.StatusCode == http.StatusOK {
			t.Errorf("%s: still signed in", name)
		}
		signIn(http.StatusForbidden, http.StatusServiceUnavailable)
		token(nil)
	}
	tampered := signIn(http.StatusSeeOther)
	id := tampered.Cookie("kuota").Value
	for _, value := range []string{id[1:], id + "A", strings.ToLower(id)} {
		secrets[value] = "a changed cookie"
		ask(c.Browser(t), "/me?kuota="+value, http.StatusUnauthorized)
		answer := c.Browser(t).Ask(http.MethodGet, "/me", "", "Cookie", "kuota="+value, "Authorization", "Bearer "+value)
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("a changed cookie gets %s", answer.Status)
		}
	}
	for _, path := range []string{"/panic", "/broken", "/nowhere"} {
		tampered.Ask(http.MethodGet, path+"?code=canary-query", "", "Authorization", "Bearer canary-bearer")
	}
	c.Store.SetUnavailable(true)
	tampered.Post("/auth/logout", nil)
	c.Store.SetUnavailable(false)
	out := tampered.Post("/auth/logout", nil)
	if _, hint, found := strings.Cut(out.Text, "id_token_hint="); found {
		secrets[hint[:200]] = "an ID token"
	} else {
		t.Error("signing out names no ID token")
	}
	draft := c.Browser(t)
	draft.Post("/form", url.Values{"a": {"canary-typed"}})
	keep(draft)
	log := c.Log.String()
	for _, event := range []string{"signed in", "signed out", "session ended", "request failed", "panic", "sign-in refused"} {
		if !strings.Contains(log, event) {
			t.Errorf("the log has no %q, which it should after all this", event)
		}
	}
	for secret, what := range secrets {
		if len(secret) < 6 {
			t.Errorf("%s is %q", what, secret)
		} else if at := strings.Index(log, secret); at >= 0 {
			t.Errorf("the log has %s: %s", what, log[max(0, at-200):min(len(log), at+200)])
		}
	}
}
