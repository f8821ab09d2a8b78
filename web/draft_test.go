package web_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"
)

// noise returns text that hardly compresses.
func noise(length int) string {
	letters := []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;<>&äöü")
	text := make([]rune, length)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return string(text)
}

// expired returns a browser whose session ended while its page was open.
func expired(t *testing.T, c *console) *webtest.Browser {
	t.Helper()
	b := c.Browser(t).SignIn()
	c.Clock.Advance(webtest.Limits.Idle + time.Minute)
	return b
}

// Typed values are restored, either by the page or by a cookie.
func TestSessionEndsInTheMiddleOfAForm(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	for name, tc := range map[string]struct {
		form url.Values
		held bool // by the page, not by a cookie
	}{
		"a small form":                    {form: url.Values{"a": {"1", "2"}, "team": {"vision & <b>ünïcode</b>"}, "empty": {""}, "text": {"one\r\ntwo"}}},
		"one without fields":              {form: url.Values{}},
		"one that just fits":              {form: url.Values{"a": {noise(2000)}}},
		"one that is long and simple":     {form: url.Values{"a": {strings.Repeat("very ", 10_000)}}},
		"one that does not fit":           {form: url.Values{"a": {noise(8000)}, "b": {"<\">", "'"}}, held: true},
		"one with thousands of fields":    {form: many(1000), held: true},
		"one that is longer written down": {form: url.Values{"a": {strings.Repeat("<", 20_000)}}},
		"one with the longest script":     {form: url.Values{"script": {"#!/bin/sh\n" + noise(200<<10)}}, held: true},
		"one that a browser would cut":    {form: url.Values{"a": {noise(4500)}}, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, before := expired(t, c), c.posts()
			answer := b.Post("/form", tc.form)
			page := htmlcheck.Parse(t, answer.Text)
			htmlcheck.Page(t, page)
			if answer.StatusCode != http.StatusUnauthorized || c.posts() != before {
				t.Fatalf("the answer is %s, and %d forms were saved", answer.Status, c.posts()-before)
			}
			onward, leads := page.Find("meta[http-equiv=refresh]").Attr("content")
			if tc.held {
				held := url.Values{}
				fields := page.Find("form[method=post][action='/form'] input[type=hidden]")
				for i := range fields.Length() {
					held.Add(fields.Eq(i).AttrOr("name", ""), fields.Eq(i).AttrOr("value", ""))
				}
				if leads || b.Cookie("kuota-draft") != nil || !reflect.DeepEqual(held, tc.form) {
					t.Errorf("the page leads on: %v, has a cookie: %v, and holds %.200v", leads, b.Cookie("kuota-draft") != nil, held)
				}
				if again := b.SignIn().Post("/form", held); again.StatusCode != http.StatusOK || c.posts() != before+1 {
					t.Errorf("sent again after signing in it answers %s", again.Status)
				}
				return
			}
			login, ok := strings.CutPrefix(onward, "0; url=")
			if !ok || login != "/auth/login?return=%2Fform" {
				t.Fatalf("the page leads on to %q", onward)
			}
			if back := b.Open(login); back.Text != fmt.Sprintf("%d fields: %s", len(tc.form), tc.form.Encode()) || back.Request.URL.Path != "/form" {
				t.Errorf("after signing in %s shows %.200s", back.Request.URL, back.Text)
			}
			if again := b.Open("/form"); again.Text != "0 fields: " || b.Cookie("kuota-draft") != nil {
				t.Errorf("opened again it shows %.200s", again.Text)
			}
		})
	}
}

// No real form is this long, and reading it costs.
func TestLongAnonymousFormsAreNotRead(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	if answer := c.Browser(t).Post("/form", url.Values{"a": {strings.Repeat("x", 1_000_000)}}); answer.StatusCode != http.StatusRequestEntityTooLarge || len(answer.Text) > 10_000 {
		t.Errorf("the answer is %s with %d bytes", answer.Status, len(answer.Text))
	}
}

// With two users of one browser, the second does not get the draft of the first.
func TestDraftOfAnotherUser(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := expired(t, c)
	b.Post("/form", url.Values{"a": {"of ada"}, "as": {"ada@example.com"}})
	if b.Cookie("kuota-draft") == nil {
		t.Fatal("nothing is kept")
	}
	c.Provider.Change(func(p *signintest.Behavior) {
		p.Claims = map[string]any{"sub": "5678", "email": "bob@example.com"}
	})
	if back := b.SignIn().Open("/form"); strings.Contains(back.Text, "of ada") {
		t.Errorf("bob gets %s", back.Text)
	}
}

func many(fields int) url.Values {
	form := url.Values{}
	for i := range fields {
		form.Set(fmt.Sprint("field-", i), noise(10))
	}
	return form
}

// A draft is restored completely, only in its own form, and within ten minutes.
func TestDraftsThatAreNotForThisForm(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	for name, tc := range map[string]struct {
		change func(b *webtest.Browser, draft *http.Cookie)
		path   string
		stays  bool // and is restored in its own form
	}{
		"another form": {path: "/form/other", stays: true},
		"one letter changed": {change: func(b *webtest.Browser, draft *http.Cookie) {
			letter := map[bool]string{true: "B", false: "A"}[draft.Value[len(draft.Value)-40] == 'A']
			draft.Value = draft.Value[:len(draft.Value)-40] + letter + draft.Value[len(draft.Value)-39:]
		}},
		"cut off": {change: func(_ *webtest.Browser, draft *http.Cookie) { draft.Value = draft.Value[:len(draft.Value)-10] }},
		"sealed with another key": {change: func(_ *webtest.Browser, draft *http.Cookie) {
			draft.Value, _ = webtest.NewRing(t, webtest.NewKey()).Seal("kuota-draft", []byte("{}"))
		}},
		"sealed for another place": {change: func(_ *webtest.Browser, draft *http.Cookie) {
			plain, _ := c.Ring.Open("kuota-draft", draft.Value)
			draft.Value, _ = c.Ring.Seal("kuota-signin-", plain)
		}},
		"not what we seal": {change: func(_ *webtest.Browser, draft *http.Cookie) {
			draft.Value, _ = c.Ring.Seal("kuota-draft", []byte("not compressed"))
		}},
		"eleven minutes old": {change: func(*webtest.Browser, *http.Cookie) { c.Clock.Advance(11 * time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := expired(t, c)
			b.Post("/form", url.Values{"a": {"b"}})
			draft := b.Cookie("kuota-draft")
			if draft == nil {
				t.Fatal("there is no draft")
			}
			if tc.change != nil {
				tc.change(b, draft)
				draft.Path = "/"
				b.SetCookies(draft)
			}
			path := "/form"
			if tc.path != "" {
				path = tc.path
			}
			if answer := b.SignIn().Open(path); answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Text, "0 fields") {
				t.Errorf("%s shows %s", path, answer.Text)
			}
			if answer := b.Open("/form"); tc.stays != (answer.Text == "1 fields: a=b") {
				t.Errorf("then its own form shows %s", answer.Text)
			}
		})
	}
}

// Only a form that was sent from a page of the console is kept.
func TestPostsThatAreNotKept(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	foreign := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Accept", "text/html", "Origin", "https://evil.example"}
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
	}{
		"a script's":                    {http.MethodPost, "/form", "a=b", webtest.Script, http.StatusUnauthorized},
		"a script's, in an old browser": {http.MethodPost, "/form", "a=b", []string{"Accept", "text/html", "X-Requested-With", "fetch"}, http.StatusUnauthorized},
		"a program's":                   {http.MethodPost, "/form", "a=b", nil, http.StatusUnauthorized},
		"to what is no form":            {http.MethodPost, "/who", "a=b", webtest.Navigation, http.StatusUnauthorized},
		"to nowhere":                    {http.MethodPost, "/nowhere", "a=b", webtest.Navigation, http.StatusUnauthorized},
		"by another method":             {http.MethodPut, "/form", "a=b", webtest.Navigation, http.StatusUnauthorized},
		"another site's":                {http.MethodPost, "/form", "a=b", foreign, http.StatusForbidden},
		"one that cannot be read":       {http.MethodPost, "/form", "a=%zz", webtest.Navigation, http.StatusBadRequest},
		"one larger than any may be":    {http.MethodPost, "/form", "a=" + strings.Repeat("b", 2<<20), webtest.Navigation, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.Browser(t)
			answer := b.Ask(tc.method, tc.path, tc.body, tc.headers...)
			if answer.StatusCode != tc.want || len(answer.Cookies()) != 0 || strings.Contains(answer.Text, "hidden\"") || strings.Contains(answer.Text, "http-equiv") {
				t.Errorf("the answer is %s, want %d, with cookies %v: %s", answer.Status, tc.want, answer.Cookies(), answer.Text)
			}
			if c.posts() != 0 {
				t.Error("it was saved")
			}
		})
	}
}
