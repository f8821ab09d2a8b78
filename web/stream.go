package web

import (
	"bytes"
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
	// streamGap is the least time between two updates of a page: changes in
	// between become one. It bounds the age of what is shown as well.
	streamGap = 150 * time.Millisecond
	// streamBeat is how often the state of the cluster is sent in any case.
	streamBeat = time.Second
	// streamLook is after how many beats a page is rendered again though nothing
	// told of a change: what its reader may see changes unseen.
	streamLook = 5
	// streamWrite is how long a browser may take to read one update.
	streamWrite = 10 * time.Second
)

// Stream sends what changed on a page, as long as the page is open. part
// renders the page's live part; status renders how old its data is. Both are
// components with an id, which the page's script puts in the place of the old.
// changed has a value when it is worth rendering again. Before each update it
// is asked anew who the reader is; UserOf tells their groups of then, and the
// stream ends with their session. While part fails, only status is sent.
func (s *Server) Stream(c echo.Context, changed <-chan struct{}, part, status func(context.Context) (templ.Component, error)) error {
	stream := s.begin(c)
	defer stream.end()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	gap := time.NewTimer(0) // the page may have changed since it was rendered
	defer gap.Stop()
	waiting := true
	for beats := 0; ; {
		var beating bool
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-s.closing:
			return nil
		case <-changed:
			if !waiting {
				waiting = true
				gap.Reset(streamGap)
			}
			continue
		case <-gap.C:
			waiting = false
		case <-beat.C:
			beating = true
			beats++
		}
		if !s.still(stream) {
			return nil
		}
		var err error
		if beating {
			err = stream.send(status, false)
		}
		if err == nil && (!beating || beats%streamLook == 0) {
			err = stream.send(part, true)
		}
		if !s.goesOn(stream, err) {
			return nil
		}
	}
}

// begin answers with a stream, which end ends.
func (s *Server) begin(c echo.Context) *stream {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	c.Set(streamKey, true)
	s.metrics.clients.WithLabelValues(c.Path()).Inc()
	s.metrics.updates.WithLabelValues(c.Path()) // none yet
	return &stream{c: c, control: http.NewResponseController(c.Response()), metrics: s.metrics}
}

func (s *stream) end() { s.metrics.clients.WithLabelValues(s.c.Path()).Dec() }

// still asks anew who reads a stream, and tells whether somebody does. A browser
// whose reader cannot be known now asks again, and is told.
func (s *Server) still(stream *stream) bool {
	err := s.identify(stream.c, false)
	if errors.Is(err, session.ErrNone) {
		_ = stream.write([]byte("event: signed-out\ndata:\n\n"))
	}
	return err == nil
}

// goesOn tells whether a stream can go on after it was sent something. Where
// there is nothing to show now, the next beat says how old the page is.
func (s *Server) goesOn(stream *stream, err error) bool {
	if errors.Is(err, errRender) {
		s.log.Debug("stream cannot be rendered", "path", stream.c.Request().URL.Path, "error", err)
		return true
	}
	return err == nil // else the browser is gone
}

// errRender is wrapped by errors that are not the connection's.
var errRender = errors.New("rendering an update")

// stream is one open connection.
type stream struct {
	c       echo.Context
	control *http.ResponseController
	last    []byte // what was sent of the part
	rows    rows   // that the page has of it
	metrics *metrics
}

// send renders a component and sends it as one event. With once, what was sent
// last is not sent again, and rows that the page has neither.
func (s *stream) send(render func(context.Context) (templ.Component, error), once bool) error {
	began := time.Now()
	html, err := rendered(s.c.Request().Context(), render)
	if err != nil {
		return err
	}
	if once {
		s.metrics.rendered(began)
		return s.sendOnce(html)
	}
	return s.write(event(html))
}

// sendOnce sends a part, unless it was the last that was sent.
func (s *stream) sendOnce(html []byte) error {
	if bytes.Equal(html, s.last) {
		return nil
	}
	short, rows := s.rows.update(html)
	s.last, s.rows = html, rows
	if err := s.write(event(short)); err != nil {
		return err
	}
	s.metrics.updates.WithLabelValues(s.c.Path()).Inc()
	return nil
}

func rendered(ctx context.Context, render func(context.Context) (templ.Component, error)) ([]byte, error) {
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

// event is HTML as one event of a stream.
func event(html []byte) []byte {
	var event bytes.Buffer
	event.WriteString("event: fragment\n")
	// A carriage return ends a line of a stream too; in HTML it can be written
	// otherwise.
	for line := range bytes.Lines(bytes.ReplaceAll(html, []byte("\r"), []byte("&#13;"))) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	event.WriteString("\n")
	return event.Bytes()
}

// write sends bytes to the browser at once.
func (s *stream) write(event []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}
	if _, err := s.c.Response().Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}
