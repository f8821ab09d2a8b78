package web

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"kuota.dev/kuota/views/ui"
)

// reader is the source of a shared part for one open page.
type reader struct {
	feeds *feeds
	part  Part
	key   string
	feed  *feed         // nil while what the reader may see is unknown
	news  chan struct{} // receives when the feed rendered
}

func newReader(feeds *feeds, part Part) *reader {
	r := &reader{feeds: feeds, part: part, news: make(chan struct{}, 1)}
	r.news <- struct{}{}
	return r
}

func (r *reader) due() <-chan struct{} { return r.news }

// html returns what the feed rendered last. It reads first what the reader may
// see now: a reader who may see less than before must not get a rendering for
// those who see more.
func (r *reader) html(ctx context.Context) ([]byte, error) {
	key, render, err := r.part.Shared(ctx)
	if err != nil {
		r.close()
		return nil, fmt.Errorf("%w: %w", errRender, err)
	}
	if r.feed == nil || key != r.key {
		r.close()
		r.key = key
		r.feed = r.feeds.join(r, render)
	}
	return r.feed.last(), nil
}

func (r *reader) close() {
	if r.feed != nil {
		r.feeds.leave(r)
		r.feed = nil
	}
}

// feeds are the feeds that have readers. It is safe for concurrent use.
type feeds struct {
	base    string
	log     *slog.Logger
	metrics *metrics
	mu      sync.Mutex
	open    map[string]*feed // by key
}

// feed renders a shared part for all readers of one key, while there are any.
type feed struct {
	stop    context.CancelFunc
	log     *slog.Logger
	metrics *metrics
	mu      sync.Mutex
	html    []byte // nil before the first rendering, and after one that failed
	readers map[*reader]struct{}
}

// join adds a reader to the feed of its key; the first reader starts the feed.
func (f *feeds) join(r *reader, render RenderFunc) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.open[r.key]
	if found == nil {
		ctx, stop := context.WithCancel(ui.WithBase(context.Background(), f.base))
		found = &feed{stop: stop, log: f.log, metrics: f.metrics, readers: map[*reader]struct{}{}}
		if f.open == nil {
			f.open = map[string]*feed{}
		}
		f.open[r.key] = found
		go found.run(ctx, render, r.part.ticks(ctx))
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	found.readers[r] = struct{}{}
	return found
}

// leave removes a reader from its feed; the last reader stops the feed.
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

// run renders the part at each tick and every refreshBeats heartbeats, until ctx
// ends.
func (f *feed) run(ctx context.Context, render RenderFunc, ticks <-chan struct{}) {
	refresh := time.NewTicker(refreshBeats * heartbeat)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-refresh.C:
		}
		began := time.Now()
		html, err := f.render(ctx, render)
		if err != nil {
			f.log.Debug("stream cannot be rendered", "error", err)
			html = nil // the heartbeat shows readers how old their page is
		} else {
			f.metrics.rendered(began)
		}
		f.publish(html)
	}
}

// render renders the part. It recovers from panics, which would otherwise end
// the process: no request's middleware runs in the goroutine of a feed.
func (f *feed) render(ctx context.Context, render RenderFunc) (html []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("panic", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
			html, err = nil, errRender
		}
	}()
	return renderHTML(ctx, render)
}

// publish stores html and wakes all readers.
func (f *feed) publish(html []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.html = html
	for r := range f.readers {
		select {
		case r.news <- struct{}{}:
		default: // the reader has not read since the last wake-up
		}
	}
}

func (f *feed) last() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.html
}

// Updates of a long table change few rows. Each row that did not change is sent
// as <tr id="…" data-keep></tr>, which the page's script leaves as it is.
var (
	rowStart = []byte(`<tr id="`)
	rowEnd   = []byte("</tr>")
	rowSeed  = maphash.MakeSeed()
)

// rows are the table rows of a page: hashes of their HTML by their id.
type rows map[string]uint64

// update returns html without the content of rows that the page has already, and
// the rows of the page afterwards.
func (r rows) update(html []byte) (short []byte, now rows) {
	now = rows{}
	var out bytes.Buffer
	for {
		begin := bytes.Index(html, rowStart)
		if begin < 0 {
			break
		}
		id, _, ended := bytes.Cut(html[begin+len(rowStart):], []byte(`"`))
		size := bytes.Index(html[begin:], rowEnd)
		if !ended || size < 0 {
			break
		}
		row := html[begin : begin+size+len(rowEnd)]
		out.Write(html[:begin])
		hash := maphash.Bytes(rowSeed, row)
		if before, known := r[string(id)]; known && before == hash {
			fmt.Fprintf(&out, `<tr id="%s" data-keep></tr>`, id)
		} else {
			out.Write(row)
		}
		now[string(id)] = hash
		html = html[begin+len(row):]
	}
	out.Write(html)
	return out.Bytes(), now
}
