package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kuota.dev/kuota/web/session"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

const (
	// defaultMinGap is the least time between two renderings of a part that sets
	// no MinGap.
	defaultMinGap = 150 * time.Millisecond
	// heartbeat is the interval at which a stream sends the cluster status.
	heartbeat = time.Second
	// refreshBeats is the number of heartbeats after which a part is rendered
	// again without a change: what the reader may see can change without one.
	refreshBeats = 5
	// writeTimeout is how long a browser may take to read one event.
	writeTimeout = 10 * time.Second
)

// RenderFunc returns a component. The component has an id, and the page's script
// replaces the element with that id.
type RenderFunc = func(context.Context) (templ.Component, error)

// Part is the live part of a page. Exactly one of Render, Shared and Pieces is set.
type Part struct {
	// Changed returns a channel that receives when the part may have changed,
	// until ctx ends. Nil: the part is rendered every refreshBeats heartbeats.
	Changed func(ctx context.Context) <-chan struct{}
	// Awaited is like Changed for what readers wait for: it is rendered after
	// defaultMinGap also where MinGap is longer. Nil: nothing is.
	Awaited func(ctx context.Context) <-chan struct{}
	// MinGap is the least time between two renderings; 0 means defaultMinGap.
	MinGap time.Duration
	// Render renders the part for one reader, whom UserOf returns.
	Render RenderFunc
	// Shared returns the key of what the reader may see now, and the function
	// that renders it. Readers with the same key share one rendering, so render
	// must not depend on the reader beyond the key.
	Shared func(ctx context.Context) (key string, render RenderFunc, err error)
	// Pieces returns a channel of pieces for one reader, each of which is sent once,
	// until ctx ends. A sender waits while the browser does not read.
	Pieces func(ctx context.Context) <-chan templ.Component
}

// Stream keeps part up to date on an open page, as server-sent events, until
// the browser disconnects, the session ends or the server shuts down. status
// renders how old the data is. Before each event the stream identifies the
// reader again. While part fails, only status is sent.
func (s *Server) Stream(c echo.Context, part Part, status RenderFunc) error {
	stream := s.openStream(c)
	defer stream.end()
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	source := s.newSource(ctx, part)
	defer source.close()
	var pieces <-chan templ.Component
	if part.Pieces != nil {
		pieces = part.Pieces(ctx)
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for beats := 0; ; {
		beating := false
		var piece templ.Component
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing:
			return nil
		case piece = <-pieces:
		case <-source.due():
		case <-beat.C:
			beating = true
			beats++
		}
		if !s.stillSignedIn(stream) {
			return nil
		}
		if piece != nil {
			if !s.connected(stream, stream.sendPiece(piece)) {
				return nil
			}
			continue
		}
		if beating && !s.connected(stream, stream.sendStatus(status)) {
			return nil
		}
		if (!beating || beats%refreshBeats == 0) && !s.connected(stream, stream.sendPart(source)) {
			return nil
		}
	}
}

// source renders the live part of one open page. All methods are called from
// the goroutine of the request.
type source interface {
	// due receives when html may return something new; the first time at once.
	due() <-chan struct{}
	// html returns the part as the reader may see it now; nil while it cannot be
	// rendered.
	html(ctx context.Context) ([]byte, error)
	close()
}

// newSource returns the source of part, which ends with ctx or its close.
func (s *Server) newSource(ctx context.Context, part Part) source {
	switch {
	case part.Shared != nil:
		return newReader(&s.feeds, part)
	case part.Pieces != nil:
		return nothing{}
	}
	return &personal{render: part.Render, metrics: s.metrics, ticks: part.ticks(ctx)}
}

// nothing is the source of a part that consists of pieces.
type nothing struct{}

func (nothing) due() <-chan struct{} { return nil }

func (nothing) html(context.Context) ([]byte, error) { return nil, nil }

func (nothing) close() {}

// personal is the source of a part that is rendered for one reader. It renders
// in the goroutine of the request: Echo reuses the request's context afterwards.
type personal struct {
	render  RenderFunc
	metrics *metrics
	ticks   <-chan struct{}
}

func (p *personal) due() <-chan struct{} { return p.ticks }

func (p *personal) close() {}

func (p *personal) html(ctx context.Context) ([]byte, error) {
	began := time.Now()
	html, err := renderHTML(ctx, p.render)
	if err == nil {
		p.metrics.rendered(began)
	}
	return html, err
}

// ticks returns a channel that receives at once and then after changes, at most
// once per MinGap, until ctx ends. Changes within a gap become one tick. What is
// awaited shortens the gap.
func (p Part) ticks(ctx context.Context) <-chan struct{} {
	var changed, awaited <-chan struct{}
	if p.Changed != nil {
		changed = p.Changed(ctx)
	}
	if p.Awaited != nil {
		awaited = p.Awaited(ctx)
	}
	gap := cmp.Or(p.MinGap, defaultMinGap)
	due := make(chan struct{}, 1)
	due <- struct{}{}
	go func() {
		last := time.Now()
		var planned time.Time
		var plan <-chan time.Time // nil while there is nothing to render
		after := func(gap time.Duration) {
			if at := last.Add(gap); plan == nil || at.Before(planned) {
				planned, plan = at, time.After(time.Until(at))
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				after(gap)
			case <-awaited:
				after(min(gap, defaultMinGap))
			case last = <-plan:
				plan = nil
				select {
				case due <- struct{}{}:
				default: // the receiver has not rendered since the last tick
				}
			}
		}
	}()
	return due
}

// openStream starts an event stream as the response to c. The caller calls end.
func (s *Server) openStream(c echo.Context) *stream {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	c.Set(streamKey, true)
	s.metrics.clients.WithLabelValues(c.Path()).Inc()
	s.metrics.updates.WithLabelValues(c.Path()) // so that the series exists at 0
	return &stream{c: c, control: http.NewResponseController(c.Response()), metrics: s.metrics}
}

// stillSignedIn identifies the reader again and reports whether the stream may
// continue. Where the session ended, the browser receives a signed-out event.
// Where it cannot be confirmed now, the stream ends without one: the browser
// reconnects and receives the error.
func (s *Server) stillSignedIn(stream *stream) bool {
	err := s.identify(stream.c, false)
	if errors.Is(err, session.ErrNotFound) {
		_ = stream.write([]byte("event: signed-out\ndata:\n\n"))
	}
	return err == nil
}

// Session returns a function that returns the user of a request as long as the session or the
// token lasts, also after the response: session.ErrNotFound or ErrToken once it ended.
func (s *Server) Session(c echo.Context) func(context.Context) (User, error) {
	user := UserOf(c)
	if s.signIn == nil {
		return func(context.Context) (User, error) { return user, nil }
	}
	if token := bearer(c.Request()); token != "" {
		return func(ctx context.Context) (User, error) {
			found, err := s.tokens(ctx, token)
			found.From = user.From
			return found, err
		}
	}
	cookie := s.cookie(c, sessionCookie)
	return func(ctx context.Context) (User, error) {
		found, err := s.signIn.Sessions.Find(ctx, cookie, false)
		if err != nil {
			return User{}, err
		}
		return sessionUser(found, user.From), nil
	}
}

// connected reports whether a stream can continue after err. It logs errors of
// rendering; the next heartbeat shows how old the page is. All other errors
// mean that the browser disconnected.
func (s *Server) connected(stream *stream, err error) bool {
	if errors.Is(err, errRender) {
		s.log.Debug("stream cannot be rendered", "path", stream.c.Request().URL.Path, "error", err)
		return true
	}
	return err == nil
}

// errRender is wrapped by errors of rendering, as opposed to the connection's.
var errRender = errors.New("render an update")

// stream is one open connection.
type stream struct {
	c       echo.Context
	control *http.ResponseController
	last    []byte // the part as last sent
	rows    rows   // the table rows of last
	metrics *metrics
}

func (s *stream) end() { s.metrics.clients.WithLabelValues(s.c.Path()).Dec() }

func (s *stream) sendStatus(status RenderFunc) error {
	html, err := renderHTML(s.c.Request().Context(), status)
	if err != nil {
		return err
	}
	return s.write(event(html))
}

// sendPiece sends a piece. It keeps nothing of it.
func (s *stream) sendPiece(piece templ.Component) error {
	html, err := renderHTML(s.c.Request().Context(), func(context.Context) (templ.Component, error) { return piece, nil })
	if err != nil {
		return err
	}
	if err := s.write(event(html)); err != nil {
		return err
	}
	s.metrics.updates.WithLabelValues(s.c.Path()).Inc()
	return nil
}

// sendPart sends what changed of the part since it was last sent.
func (s *stream) sendPart(source source) error {
	html, err := source.html(s.c.Request().Context())
	if err != nil || html == nil || bytes.Equal(html, s.last) {
		return err
	}
	short, rows := s.rows.update(html)
	s.last, s.rows = html, rows
	if err := s.write(event(short)); err != nil {
		return err
	}
	s.metrics.updates.WithLabelValues(s.c.Path()).Inc()
	return nil
}

func renderHTML(ctx context.Context, render RenderFunc) ([]byte, error) {
	component, err := render(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRender, err)
	}
	var html bytes.Buffer
	if err := component.Render(ctx, &html); err != nil {
		return nil, fmt.Errorf("%w: %w", errRender, err)
	}
	return html.Bytes(), nil
}

// event returns html as one server-sent event named fragment.
func event(html []byte) []byte {
	var event bytes.Buffer
	event.WriteString("event: fragment\n")
	// A carriage return would end the line of the event; in HTML it can be
	// written as a character reference.
	for line := range bytes.Lines(bytes.ReplaceAll(html, []byte("\r"), []byte("&#13;"))) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	event.WriteString("\n")
	return event.Bytes()
}

// write sends bytes to the browser without buffering.
func (s *stream) write(event []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.c.Response().Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}
