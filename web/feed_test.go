package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// refreshTime is the limit within which the scope of a reader is checked again: five
// beats, and a little.
const refreshTime = 8 * time.Second

// board is a part that many pages show. Tests set its content, who sees it, and what
// fails.
type board struct {
	mu        sync.Mutex
	texts     map[string]string // by key
	sees      map[string]string // the key of each address's query
	seeFails  error
	fails     error
	panics    bool
	renders   int
	feeds     []context.Context // of all feeds that began
	listeners map[chan struct{}]bool
}

// boards runs a console with a board at /board/events.
func boards(t *testing.T, b *board) *webtest.Console {
	t.Helper()
	b.texts, b.sees, b.listeners = map[string]string{"": "first"}, map[string]string{}, map[chan struct{}]bool{}
	return webtest.Start(t, webtest.Setup{Register: func(server *web.Server) {
		server.Page("/", func(c echo.Context) error { return c.String(http.StatusOK, "here") })
		server.Events("/board/events", func(c echo.Context) error {
			see := func(context.Context) (string, web.RenderFunc, error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				key := b.sees[c.QueryParam("reader")]
				return key, func(context.Context) (templ.Component, error) { return b.render(key) }, b.seeFails
			}
			status := func(context.Context) (templ.Component, error) { return templ.Raw("<p id=age>age</p>"), nil }
			return server.Stream(c, web.Part{Shared: see, Changed: b.listen}, status)
		})
	}})
}

func (b *board) render(key string) (templ.Component, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renders++
	if b.panics {
		panic("a mistake in a page")
	}
	return templ.Raw("<p id=board>" + b.texts[key] + "</p>"), b.fails
}

// listen is called once by each feed that begins.
func (b *board) listen(ctx context.Context) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feeds = append(b.feeds, ctx)
	changed := make(chan struct{}, 1)
	b.listeners[changed] = true
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, changed)
	})
	return changed
}

// change changes the board, and signals all feeds.
func (b *board) change(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	for changed := range b.listeners {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// begun returns the feeds that began so far.
func (b *board) begun() []context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.feeds
}

// A part is rendered once for each change, for any number of readers.
func TestSharedPartIsRenderedOnce(t *testing.T) {
	t.Parallel()
	b := &board{}
	reader := boards(t, b).Browser(t).SignIn()
	began := time.Now()
	var all []<-chan string
	for range 20 {
		all = append(all, linesOf(t, reader, "/board/events"))
	}
	for _, lines := range all {
		until(t, lines, "first", 5*time.Second)
	}
	for i := range 3 {
		text := fmt.Sprintf("change %d", i)
		b.change(func() { b.texts[""] = text })
		for _, lines := range all {
			until(t, lines, text, 5*time.Second)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := 4 + int(time.Since(began)/(5*time.Second)); b.renders > most || len(b.feeds) != 1 {
		t.Errorf("%d feeds rendered %d times for 20 readers, want 1 and at most %d", len(b.feeds), b.renders, most)
	}
}

// A reader whose scope shrinks soon gets the other part, and nothing more of the
// larger one, although it keeps changing.
func TestReaderWithReducedScope(t *testing.T) {
	t.Parallel()
	b := &board{}
	person := boards(t, b).Browser(t).SignIn()
	b.change(func() {
		b.texts = map[string]string{"all": "all of then", "few": "a few"}
		b.sees["leaver"], b.sees["stayer"] = "all", "all"
	})
	leaver, stayer := linesOf(t, person, "/board/events?reader=leaver"), linesOf(t, person, "/board/events?reader=stayer")
	until(t, leaver, "all of then", 5*time.Second)
	until(t, stayer, "all of then", 5*time.Second)
	b.change(func() { b.sees["leaver"], b.texts["all"] = "few", "all of now" })
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				b.change(func() { b.texts["all"] = fmt.Sprintf("all of now, %d", i) })
			}
		}
	})
	defer changing.Wait()
	defer close(stop)
	read := until(t, leaver, "a few", refreshTime)
	until(t, stayer, "all of now", 5*time.Second)
	for range 3 { // beats
		read = append(read, until(t, leaver, "age", 5*time.Second)...)
	}
	if strings.Contains(strings.Join(read, "\n"), "all of now") {
		t.Errorf("who sees a few reads %q", read)
	}
}

// A part without readers is not rendered. The next reader starts a new feed.
func TestFeedEndsWithItsLastReader(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *webtest.Console, person *webtest.Browser, stream *http.Response){
		"who closes the page": func(_ *webtest.Console, _ *webtest.Browser, stream *http.Response) { stream.Body.Close() },
		"who signs out":       func(_ *webtest.Console, person *webtest.Browser, _ *http.Response) { person.Post("/auth/logout", nil) },
		"when all stops":      func(c *webtest.Console, _ *webtest.Browser, _ *http.Response) { c.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &board{}
			c := boards(t, b)
			person := c.Browser(t).SignIn()
			first, last := person.Stream(http.MethodGet, "/board/events", webtest.Script...), person.Stream(http.MethodGet, "/board/events", webtest.Script...)
			until(t, linesIn(t, first), "first", 5*time.Second)
			lines := linesIn(t, last)
			until(t, lines, "first", 5*time.Second)
			first.Body.Close()
			for i := range 3 { // the first feed has ended by then
				text := fmt.Sprintf("change %d", i)
				b.change(func() { b.texts[""] = text })
				until(t, lines, text, 5*time.Second)
				until(t, lines, "age", 5*time.Second)
			}
			if feeds := b.begun(); len(feeds) != 1 || feeds[0].Err() != nil {
				t.Fatalf("of %d feeds the first is %v though it has a reader", len(feeds), feeds[0].Err())
			}
			leave(c, person, last)
			wait(t, "the feed ends", 5*time.Second, func() bool { return b.begun()[0].Err() != nil })
			if read := strings.Join(until(t, lines, "", 5*time.Second), "\n"); strings.Contains(read, "signed-out") != (name == "who signs out") {
				t.Errorf("it ends with %q", read)
			}
			if name == "who closes the page" {
				until(t, linesOf(t, person, "/board/events"), "change 2", 5*time.Second)
				if n := len(b.begun()); n != 2 {
					t.Errorf("who comes later reads one of %d feeds, want a second", n)
				}
			}
		})
	}
}

// While a part cannot be shown, its readers see the age of their page, and the part
// again afterwards.
func TestSharedPartThatCannotBeShown(t *testing.T) {
	t.Parallel()
	failure := errors.New("a secret of the inside")
	for name, fail := range map[string]func(b *board, fails bool){
		"who sees it is not known": func(b *board, fails bool) {
			if b.seeFails = nil; fails {
				b.seeFails = failure
			}
		},
		"it cannot be rendered": func(b *board, fails bool) {
			if b.fails = nil; fails {
				b.fails = failure
			}
		},
		"it panics": func(b *board, fails bool) { b.panics = fails },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &board{}
			person := boards(t, b).Browser(t).SignIn()
			open := linesOf(t, person, "/board/events")
			until(t, open, "first", 5*time.Second)
			b.change(func() { fail(b, true); b.texts[""] = "second" })
			late := linesOf(t, person, "/board/events") // opened during the failure
			var read []string
			for range 6 { // more beats than between two scope checks
				read = append(append(read, until(t, open, "age", 5*time.Second)...), until(t, late, "age", 5*time.Second)...)
			}
			for _, text := range []string{"second", "secret", "mistake"} {
				if strings.Contains(strings.Join(read, "\n"), text) {
					t.Errorf("meanwhile they read %q", read)
				}
			}
			b.change(func() { fail(b, false) })
			until(t, open, "second", refreshTime)
			until(t, late, "second", refreshTime)
		})
	}
}

// A browser that does not read delays no other reader of the same part.
func TestReaderThatDoesNotRead(t *testing.T) {
	t.Parallel()
	b := &board{}
	person := boards(t, b).Browser(t).SignIn()
	dead := person.Stream(http.MethodGet, "/board/events", webtest.Script...)
	defer dead.Body.Close()
	open := linesOf(t, person, "/board/events")
	until(t, open, "first", 5*time.Second)
	large := strings.Repeat("more than a connection holds, in many lines\n", 250_000)
	for i := range 3 {
		last := fmt.Sprint("change ", i)
		b.change(func() { b.texts[""] = large + last })
		for line := range open {
			if strings.Contains(line, last) {
				break
			}
		}
	}
	b.change(func() { b.texts[""] = "after" })
	until(t, open, "after", 5*time.Second)
}
