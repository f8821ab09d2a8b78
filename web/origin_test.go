package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/webtest"
)

const evil = "https://evil.example"

// KueueViz opened streams for pages of other sites (kubernetes-sigs/kueue#12734).
// Requests from other sites are refused, even with the session's cookie.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	const get, post, refused = http.MethodGet, http.MethodPost, http.StatusForbidden
	for name, tc := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"our own form":                    {post, "/form", webtest.Navigation, 200},
		"our own script":                  {post, "/form", webtest.Script, 200},
		"our own form in an old browser":  {post, "/form", []string{"Origin", c.URL}, 200},
		"another site's form":             {post, "/form", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Origin", evil}, refused},
		"a neighbour's form":              {post, "/form", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, refused},
		"another site's script":           {post, "/form", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, refused},
		"a form in an old browser":        {post, "/form", []string{"Origin", evil}, refused},
		"a form that hides where from":    {post, "/form", []string{"Origin", "null"}, refused},
		"a form of another port":          {post, "/form", []string{"Origin", "http://127.0.0.1:1"}, refused},
		"a name that begins like ours":    {post, "/form", []string{"Origin", c.URL + ".evil.example"}, refused},
		"a write by another method":       {http.MethodDelete, "/form", []string{"Sec-Fetch-Site", "cross-site"}, refused},
		"a link":                          {get, "/me", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"an image":                        {get, "/me", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, refused},
		"a fetch":                         {get, "/me", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", evil}, refused},
		"a neighbour's fetch":             {get, "/me", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, refused},
		"our own stream":                  {get, "/me/events", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		"our own stream, an old browser":  {get, "/me/events", []string{"Origin", c.URL}, 200},
		"a stream":                        {get, "/me/events", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, refused},
		"a stream that looks like a link": {get, "/me/events", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, refused},
		"a neighbour's stream":            {get, "/me/events", []string{"Sec-Fetch-Site", "same-site"}, refused},
		"a stream in an old browser":      {get, "/me/events", []string{"Origin", evil}, refused},
		"a stream that hides where from":  {get, "/me/events", []string{"Origin", "null"}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.posts()
			response := b.Stream(tc.method, tc.path, tc.headers...)
			defer response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("the answer is %s, want %d", response.Status, tc.want)
			}
			if saved := c.posts() - before; tc.method == post && (saved == 1) != (tc.want == 200) {
				t.Errorf("%d forms were saved", saved)
			}
			shareless(t, response)
		})
	}
}

// No other site can frame a page of the console, in any browser.
func TestFraming(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for _, path := range []string{"/me", "/form", "/nowhere", "/panic", "/auth/signed-out", "/static/favicon.svg", "/auth/callback"} {
		answer := b.Ask(http.MethodGet, path, "", webtest.Navigation...)
		policies := strings.Split(answer.Header.Get("Content-Security-Policy"), "; ")
		if !slices.Contains(policies, "frame-ancestors 'none'") || answer.StatusCode == http.StatusForbidden {
			t.Errorf("%s: %s with policy %q", path, answer.Status, policies)
		}
		for _, frame := range []string{"iframe", "frame", "embed", "object", "fencedframe"} {
			for _, site := range []string{"same-origin", "cross-site"} {
				answer := b.Ask(http.MethodGet, path, "", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", frame, "Sec-Fetch-Site", site)
				if answer.StatusCode != http.StatusForbidden || strings.Contains(answer.Text, "groups") {
					t.Errorf("%s in a %s, %s: %s", path, frame, site, answer.Status)
				}
			}
		}
	}
}

// No page of another site can read an answer, or gets permission to send one.
func TestPreflight(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for _, path := range []string{"/me", "/form", "/me/events", "/auth/session", "/auth/login", "/nowhere", "/static/favicon.svg"} {
		for _, origin := range []string{evil, "null", c.URL + ".evil.example"} {
			answer := b.Ask(http.MethodOptions, path, "", "Origin", origin, "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "x-requested-with", "Access-Control-Request-Private-Network", "true")
			if answer.StatusCode == http.StatusOK || len(answer.Text) > 0 && strings.Contains(answer.Text, "groups") {
				t.Errorf("%s for %s: %s", path, origin, answer.Status)
			}
			shareless(t, answer.Response)
		}
	}
}

// shareless checks that browsers hide an answer from other sites.
func shareless(t *testing.T, response *http.Response) {
	t.Helper()
	for header := range response.Header {
		if strings.HasPrefix(header, "Access-Control-") {
			t.Errorf("%s: answers %s: %s", response.Request.URL.Path, header, response.Header.Get(header))
		}
	}
	if got := response.Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
		t.Errorf("%s: Cross-Origin-Resource-Policy is %q", response.Request.URL.Path, got)
	}
}

var skipped = regexp.MustCompile(`rejected.* skipped=(\d+)`)

// Rejected requests are logged, but a page that sends many does not fill the log.
func TestRejectionsAreLogged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request func(*webtest.Browser)
		want    []string
	}{
		"a write of another site": {
			func(b *webtest.Browser) { b.Ask(http.MethodPost, "/form", "", "Origin", evil) },
			[]string{`msg="cross-site request rejected"`, "method=POST", "path=/form", "origin=" + evil, "from=127.0.0.1"},
		},
		"a frame": {
			func(b *webtest.Browser) {
				b.Ask(http.MethodGet, "/me", "", "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "cross-site")
			},
			[]string{`msg="cross-site request rejected"`, "path=/me", "site=cross-site"},
		},
		"a fetch": {
			func(b *webtest.Browser) {
				b.Ask(http.MethodGet, "/me", "", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-site")
			},
			[]string{`msg="cross-site request rejected"`, "site=same-site"},
		},
		"a stream in an old browser": {
			func(b *webtest.Browser) { b.Stream(http.MethodGet, "/me/events", "Origin", evil).Body.Close() },
			[]string{`msg="cross-site request rejected"`, "path=/me/events", "origin=" + evil},
		},
		"another host": {
			func(b *webtest.Browser) { b.Ask(http.MethodGet, "/me", "", "Host", "evil.example") },
			[]string{`msg="request for another host rejected"`, "host=evil.example"},
		},
		"a long value": {
			func(b *webtest.Browser) {
				b.Ask(http.MethodPost, "/form", "", "Origin", evil+"/"+strings.Repeat("x", 9000))
			},
			[]string{"origin=" + evil + "/" + strings.Repeat("x", 200-len(evil)-1) + " "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, webtest.Setup{})
			b := c.Browser(t).SignIn()
			tc.request(b)
			for _, want := range append(tc.want, "level=WARN", "skipped=0") {
				if log := c.Log.String(); !strings.Contains(log, want) {
					t.Errorf("the log does not contain %s:\n%s", want, log)
				}
			}
			began := time.Now()
			for range 100 {
				tc.request(b)
			}
			lines, most := strings.Count(c.Log.String(), "rejected"), 22+int(time.Since(began).Seconds())
			if lines < 20 || lines > most {
				t.Errorf("got %d lines after 101 requests, want 20 and one for each second, at most %d", lines, most)
			}
			c.Clock.Advance(5 * time.Second)
			tc.request(b)
			found := skipped.FindAllStringSubmatch(c.Log.String(), -1)
			counted := len(found)
			for _, line := range found {
				n, err := strconv.Atoi(line[1])
				if err != nil {
					t.Fatal(err)
				}
				counted += n
			}
			if counted != 102 {
				t.Errorf("the log has lines for %d requests, with those that it skipped, want 102:\n%s", counted, c.Log.String())
			}
		})
	}
}
