package web

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Shared is a live part that all readers are sent who see the same. It is
// rendered once for all of them, however many there are.
type Shared struct {
	// See is what a reader sees as of now: readers with the same key see the same.
	// part renders it for all of them, whoever asked; it must not know one of them.
	See func(ctx context.Context) (key string, part func(context.Context) (templ.Component, error), err error)
	// Changed has a value when it is worth rendering again, until ctx ends.
	Changed func(ctx context.Context) <-chan struct{}
}

// StreamShared is Stream for a part that many pages show.
func (s *Server) StreamShared(c echo.Context, shared Shared, status func(context.Context) (templ.Component, error)) error {
	stream := s.begin(c)
	defer stream.end()
	ctx := c.Request().Context()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	reader := &reader{feeds: &s.feeds, shared: shared, news: make(chan struct{}, 1)}
	defer reader.leave()
	// Before each update it is asked anew what this reader sees: what was meant
	// for one who saw more is not sent to them.
	update := func() error {
		if err := reader.look(ctx); err != nil {
			return err
		}
		if html := reader.feed.last(); html != nil {
			return stream.sendOnce(html)
		}
		return nil
	}
	err := update()
	for beats := 1; s.goesOn(stream, err); {
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing:
			return nil
		case <-reader.news:
			if !s.still(stream) {
				return nil
			}
			err = update()
		case <-beat.C:
			if !s.still(stream) || !s.goesOn(stream, stream.send(status, false)) {
				return nil
			}
			if err = nil; beats%streamLook == 0 {
				err = update()
			}
			beats++
		}
	}
	return nil
}

// reader is one page that reads a feed.
type reader struct {
	feeds  *feeds
	shared Shared
	key    string
	feed   *feed
	news   chan struct{} // has a value when the feed has something new
}

// look asks anew what the reader sees, and goes over to the feed of that. One who
// cannot be told now reads none.
func (r *reader) look(ctx context.Context) error {
	key, part, err := r.shared.See(ctx)
	if err != nil {
		r.leave()
		return fmt.Errorf("%w: %w", errRender, err)
	}
	if r.feed != nil && key == r.key {
		return nil
	}
	r.leave()
	r.key = key
	r.feed = r.feeds.join(r, part)
	return nil
}

func (r *reader) leave() {
	if r.feed != nil {
		r.feeds.leave(r)
		r.feed = nil
	}
}

// feeds are those that somebody reads, by key.
type feeds struct {
	log     *slog.Logger
	metrics *metrics
	mu      sync.Mutex
	open    map[string]*feed
}

// feed is a part that is rendered for as long as somebody reads it.
type feed struct {
	stop    context.CancelFunc
	log     *slog.Logger
	metrics *metrics
	mu      sync.Mutex
	html    []byte // what was rendered last; nil before, and while it cannot be
	readers map[*reader]struct{}
}

// join makes a reader one of the feed of its key, which begins with its first.
func (f *feeds) join(r *reader, part func(context.Context) (templ.Component, error)) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.open[r.key]
	if found == nil {
		ctx, stop := context.WithCancel(context.Background())
		found = &feed{stop: stop, log: f.log, metrics: f.metrics, readers: map[*reader]struct{}{}}
		if f.open == nil {
			f.open = map[string]*feed{}
		}
		f.open[r.key] = found
		go found.run(ctx, part, r.shared.Changed(ctx))
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	found.readers[r] = struct{}{}
	return found
}

// leave takes a reader from its feed, which ends with its last.
func (f *feeds) leave(r *reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := r.feed
	left.mu.Lock()
	defer left.mu.Unlock()
	delete(left.readers, r)
	if len(left.readers) == 0 {
		left.stop()
		delete(f.open, r.key)
	}
}

// run renders a part when it changed, at most once in a gap, and at each look.
func (f *feed) run(ctx context.Context, part func(context.Context) (templ.Component, error), changed <-chan struct{}) {
	look := time.NewTicker(streamLook * streamBeat)
	defer look.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	waiting := true
	var began time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if !waiting {
				waiting = true
				gap.Reset(max(0, streamGap-time.Since(began)))
			}
			continue
		case <-gap.C:
			waiting = false
		case <-look.C:
		}
		began = time.Now()
		html, err := f.render(ctx, part)
		if err != nil {
			f.log.Debug("stream cannot be rendered", "error", err)
			html = nil // readers say how old their page is
		} else {
			f.metrics.rendered(began)
		}
		f.tell(html)
	}
}

// render renders a part. A feed runs beside all requests, where a panic would
// end the process and not one answer: here it is one more thing that cannot be
// rendered.
func (f *feed) render(ctx context.Context, part func(context.Context) (templ.Component, error)) (html []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("panic", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
			html, err = nil, errRender
		}
	}()
	return rendered(ctx, part)
}

func (f *feed) tell(html []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.html = html
	for r := range f.readers {
		select {
		case r.news <- struct{}{}:
		default: // it has not looked since the last, and will see this one
		}
	}
}

func (f *feed) last() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.html
}
