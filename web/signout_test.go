package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/webtest"
)

// The server ends the session: a copied cookie is invalid afterwards, at every
// replica.
func TestSignOut(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	replica := start(t, webtest.Setup{Replica: c.Console})
	b, elsewhere, kept := c.Browser(t).SignIn(), c.Browser(t).SignIn(), c.Browser(t)
	kept.SetCookies(b.Cookies()...)
	if kept.Open("/me").StatusCode != http.StatusOK || kept.At(replica.Console).Open("/me").StatusCode != http.StatusOK {
		t.Fatal("the cookie does not sign in in the first place")
	}
	answer := b.Post("/auth/logout", nil)
	page := htmlcheck.Parse(t, answer.Text)
	htmlcheck.Page(t, page)
	if answer.StatusCode != http.StatusOK || page.Find("h1").Text() != "Signed out" || strings.Contains(page.Text(), "ada@") {
		t.Errorf("signing out answers %s: %s", answer.Status, page.Text())
	}
	onward, err := url.Parse(strings.TrimPrefix(page.Find("meta[http-equiv=refresh]").AttrOr("content", ""), "0; url="))
	query := onward.Query()
	if err != nil || !strings.HasPrefix(onward.String(), c.Provider.Issuer+"/end?") || query.Get("client_id") != "kuota" ||
		query.Get("post_logout_redirect_uri") != c.URL+"/auth/signed-out" || strings.Count(query.Get("id_token_hint"), ".") != 2 {
		t.Errorf("it leads on to %s", onward)
	}
	if b.Cookie("kuota") != nil {
		t.Error("the browser keeps the cookie")
	}
	if got, want := answer.Header.Get("Clear-Site-Data"), `"storage"`; got != want {
		t.Errorf("Clear-Site-Data is %s, want %s", got, want)
	}
	for name, at := range map[string]*console{"here": c, "at another replica": replica} {
		if answer := kept.At(at.Console).Ask(http.MethodGet, "/me", ""); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s the old cookie gets %s: %s", name, answer.Status, answer.Text)
		}
	}
	if elsewhere.Ask(http.MethodGet, "/me", "").StatusCode != http.StatusOK {
		t.Error("another browser of the same person is signed out too")
	}
	if again := b.Post("/auth/logout", nil); again.StatusCode != http.StatusOK || !strings.Contains(again.Text, "Signed out") {
		t.Errorf("signing out again answers %s", again.Status)
	}
	if back := b.Ask(http.MethodGet, "/auth/signed-out", ""); back.StatusCode != http.StatusOK || !strings.Contains(back.Text, "Signed out") {
		t.Errorf("back from the provider: %s", back.Status)
	}
}

// Another site cannot sign a user out.
func TestSignOutFromAnotherSite(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for name, tc := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"a form of another site":     {http.MethodPost, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Origin", "https://evil.example"}, http.StatusForbidden},
		"a form of a neighbour":      {http.MethodPost, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, http.StatusForbidden},
		"an old browser":             {http.MethodPost, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"an image of a page of ours": {http.MethodGet, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "image"}, http.StatusMethodNotAllowed},
		"a link":                     {http.MethodGet, webtest.Navigation, http.StatusMethodNotAllowed},
	} {
		if answer := b.Ask(tc.method, "/auth/logout", "", tc.headers...); answer.StatusCode != tc.want {
			t.Errorf("%s: %s, want %d", name, answer.Status, tc.want)
		}
		if b.Cookie("kuota") == nil || b.Ask(http.MethodGet, "/me", "").StatusCode != http.StatusOK {
			t.Fatalf("%s signs out", name)
		}
	}
}

// A failed sign-out is reported to the user.
func TestSignOutWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	c.Store.SetUnavailable(true)
	answer := b.Post("/auth/logout", nil)
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(answer.Text, "still signed in") || b.Cookie("kuota") == nil {
		t.Errorf("the answer is %s: %s", answer.Status, answer.Text)
	}
	if page := b.Ask(http.MethodGet, "/me", "", webtest.Navigation...); page.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a page is %s meanwhile", page.Status)
	}
	c.Store.SetUnavailable(false)
	if answer := b.Post("/auth/logout", nil); answer.StatusCode != http.StatusOK || b.Cookie("kuota") != nil {
		t.Errorf("then signing out answers %s", answer.Status)
	}
}

// A replica without the key of a session still ends it: another replica may have the
// key.
func TestSignOutWithoutTheKey(t *testing.T) {
	t.Parallel()
	one := start(t, webtest.Setup{})
	b := one.Browser(t).SignIn()
	if err := one.Ring.Replace([]byte(webtest.NewKey())); err != nil {
		t.Fatal(err)
	}
	b.Ask(http.MethodPost, "/auth/logout", "")
	if left := one.Store.Names(); len(left) != 0 {
		t.Errorf("%d sessions are left", len(left))
	}
}
