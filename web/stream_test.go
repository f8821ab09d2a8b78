package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// lines returns the lines of a stream until it ends.
func lines(t *testing.T, b *webtest.Browser) <-chan string {
	t.Helper()
	return linesOf(t, b, "/me/events")
}

// linesOf returns the lines of the stream at an address.
func linesOf(t *testing.T, b *webtest.Browser, path string) <-chan string {
	t.Helper()
	return linesIn(t, b.Stream(http.MethodGet, path, webtest.Script...))
}

// linesIn returns the lines of an open stream.
func linesIn(t *testing.T, stream *http.Response) <-chan string {
	t.Helper()
	t.Cleanup(func() { stream.Body.Close() })
	if got := stream.Header.Get("Content-Type"); stream.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("the stream is %s, %s", stream.Status, got)
	}
	all := make(chan string, 1000)
	go func() {
		defer close(all)
		for scanner := bufio.NewScanner(stream.Body); scanner.Scan(); {
			all <- scanner.Text()
		}
	}()
	return all
}

// until reads lines up to one that contains want, or to the end if want is empty.
func until(t *testing.T, all <-chan string, want string, limit time.Duration) (read []string) {
	t.Helper()
	over := time.After(limit)
	for {
		select {
		case line, more := <-all:
			read = append(read, line)
			if more && (want == "" || !strings.Contains(line, want)) {
				continue
			}
			if !more && want != "" {
				t.Fatalf("the stream ended before %q: %q", want, read)
			}
			return read
		case <-over:
			t.Fatalf("not within %s: %q; there were %q", limit, want, read)
		}
	}
}

// A stream ends with its session, and reports why (kubernetes-sigs/kueue#13173).
// That takes a little more than a beat.
func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(c *console, b *webtest.Browser)
		told bool
	}{
		"signed out": {func(_ *console, b *webtest.Browser) { b.Post("/auth/logout", nil) }, true},
		"signed out at another replica": {func(c *console, b *webtest.Browser) {
			b.At(start(t, webtest.Setup{Replica: c.Console}).Console).Post("/auth/logout", nil)
		}, true},
		"the provider says no": {func(c *console, _ *webtest.Browser) {
			c.Provider.Change(func(b *signintest.Behavior) { b.Refuse = true })
			c.Clock.Advance(6 * time.Minute)
		}, true},
		"unused for too long": {func(c *console, _ *webtest.Browser) { c.Clock.Advance(webtest.Limits.Idle + time.Minute) }, true},
		"the provider is away": {func(c *console, _ *webtest.Browser) {
			away(c, true)
			c.Clock.Advance(6 * time.Minute)
		}, false},
		"the store is away": {func(c *console, _ *webtest.Browser) { c.Store.SetUnavailable(true) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, webtest.Setup{})
			b := c.Browser(t).SignIn()
			all := lines(t, b)
			until(t, all, "ada@example.com", 5*time.Second)
			tc.end(c, b)
			rest := until(t, all, "", 2*time.Second)
			if told := strings.Contains(strings.Join(rest, "\n"), "event: signed-out\ndata:\n\n"); told != tc.told {
				t.Errorf("told that the session is over: %v; %q", told, rest)
			}
		})
	}
}

// An open page is not use: the session of a user who left ends.
func TestStreamDoesNotKeepASession(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	all := lines(t, b)
	for range 2 {
		until(t, all, "ada@example.com", 5*time.Second)
		c.Clock.Advance(webtest.Limits.Idle/2 + time.Minute)
	}
	until(t, all, "signed-out", 5*time.Second)
	if answer := b.Ask(http.MethodGet, "/me", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("then a page is %s", answer.Status)
	}
}

// A group that the provider removes is removed in open pages as well (Rancher
// GHSA-c45c-39f6-6gw9).
func TestGroupsChangeWhileAPageIsOpen(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	all := lines(t, b)
	until(t, all, `of 1 groups ["vision-team"]`, 5*time.Second)
	for _, groups := range [][]string{{"a-team", "b-team"}, {}} {
		c.Provider.Change(func(b *signintest.Behavior) { b.Claims["groups"] = groups })
		c.Clock.Advance(6 * time.Minute)
		want := fmt.Sprintf("ada@example.com of %d groups %q", len(groups), groups)
		until(t, all, want, 5*time.Second)
		if answer := b.Open("/me"); !strings.HasPrefix(answer.Text, want) {
			t.Errorf("a page is %s", answer.Text)
		}
	}
}

// Headlamp answered with data that it had cached for another user (CVE-2025-14269).
func TestTwoUsersAtOnce(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	people := map[string]*webtest.Browser{"ada@example.com": nil, "bob@example.com": nil}
	for name := range people {
		c.Provider.Change(func(b *signintest.Behavior) { b.Claims["email"], b.Claims["sub"] = name, name })
		people[name] = c.Browser(t).SignIn()
	}
	t.Run("at once", func(t *testing.T) {
		for name, b := range people {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				all := lines(t, b)
				for range 100 {
					for _, path := range []string{"/me", "/who", "/nowhere"} {
						answer := b.Ask(http.MethodGet, path, "", webtest.Navigation...)
						if !strings.Contains(answer.Text, name) || strings.Count(answer.Text, "@example.com") != strings.Count(answer.Text, name) {
							t.Fatalf("%s answers %s", path, answer.Text)
						}
					}
				}
				for _, line := range append(until(t, all, name, 5*time.Second), until(t, all, name, 5*time.Second)...) {
					if strings.Contains(line, "@") && !strings.Contains(line, name) {
						t.Errorf("the stream sends %s", line)
					}
				}
			})
		}
	})
}

// While a page cannot be rendered, its reader still sees its age.
func TestStreamThatCannotBeRendered(t *testing.T) {
	t.Parallel()
	c := webtest.Start(t, webtest.Setup{Register: func(server *web.Server) {
		server.Events("/failing/events", func(c echo.Context) error {
			part := func(context.Context) (templ.Component, error) { return nil, errors.New("no answer") }
			status := func(context.Context) (templ.Component, error) { return templ.Raw("<p id=age>old</p>"), nil }
			return server.Stream(c, web.Part{Render: part}, status)
		})
	}})
	ages := linesOf(t, c.Browser(t).SignIn(), "/failing/events")
	for range 7 { // beyond refreshBeats, after which the part is rendered again
		until(t, ages, "old", time.Minute)
	}
}

// What readers wait for is rendered before the gap between other changes is over.
func TestStreamOfAwaitedChanges(t *testing.T) {
	t.Parallel()
	changed, awaited := make(chan struct{}), make(chan struct{})
	subscribe := func(to chan struct{}) func(context.Context) <-chan struct{} {
		return func(context.Context) <-chan struct{} { return to }
	}
	c := webtest.Start(t, webtest.Setup{Register: func(server *web.Server) {
		server.Events("/awaited/events", func(c echo.Context) error {
			renderings := 0
			part := func(context.Context) (templ.Component, error) {
				renderings++
				return templ.Raw(fmt.Sprintf("<p id=part>rendering %d</p>", renderings)), nil
			}
			status := func(context.Context) (templ.Component, error) { return templ.Raw("<p id=age>old</p>"), nil }
			return server.Stream(c, web.Part{Changed: subscribe(changed), Awaited: subscribe(awaited), MinGap: time.Hour, Render: part}, status)
		})
	}})
	all := linesOf(t, c.Browser(t).SignIn(), "/awaited/events")
	until(t, all, "rendering 1", 5*time.Second)
	changed <- struct{}{}
	awaited <- struct{}{}
	until(t, all, "rendering 2", 2*time.Second) // a part is rendered again after five seconds without a change
}

// A page reports that another user has signed in with the same browser.
func TestStreamOfAnotherUser(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for address, want := range map[string]int{
		"/me/events?as=ada%40example.com": http.StatusOK, "/me/events": http.StatusOK, "/me/events?as=bob": http.StatusConflict,
		"/auth/session?as=ada%40example.com": http.StatusNoContent, "/auth/session?as=bob": http.StatusConflict,
	} {
		response := b.Stream(http.MethodGet, address, webtest.Script...)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s answers %s, want %d", address, response.Status, want)
		}
	}
}

// A page that reopens its stream repeatedly does not extend the session.
func TestStreamsDoNotKeepASessionAlive(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for range 4 {
		c.Clock.Advance(webtest.Limits.Idle / 3)
		for _, address := range []string{"/me/events", "/auth/session"} {
			b.Stream(http.MethodGet, address, webtest.Script...).Body.Close()
		}
	}
	if answer := b.Ask(http.MethodGet, "/auth/session", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("after more than the idle limit it answers %s", answer.Status)
	}
}
