package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Each piece is sent once, also if it equals the last one, and the sender ends with
// the browser.
func TestPieces(t *testing.T) {
	ended := make(chan struct{})
	c := start(t, webtest.Setup{Register: func(s *web.Server) {
		s.Events("/pieces/events", func(c echo.Context) error {
			return s.Stream(c, web.Part{Pieces: func(ctx context.Context) <-chan templ.Component {
				pieces := make(chan templ.Component)
				go func() {
					defer close(ended)
					for _, html := range []string{"<p>a</p>", "<p>a</p>", "<p>b\r\nc</p>"} {
						select {
						case pieces <- templ.Raw(html):
						case <-ctx.Done():
							return
						}
					}
					<-ctx.Done()
				}()
				return pieces
			}}, func(context.Context) (templ.Component, error) { return templ.Raw("<i>status</i>"), nil })
		})
	}})
	response := c.Browser(t).SignIn().Stream(http.MethodGet, "/pieces/events", webtest.Script...)
	var got []string
	for lines := bufio.NewScanner(response.Body); len(got) < 5 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			got = append(got, text)
		}
	}
	if want := "<p>a</p> <p>a</p> <p>b&#13; c</p> <i>status</i>"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	response.Body.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the sender goes on after the browser disconnected")
	}
}

// A file arrives as it is. One that ends with an error breaks the connection,
// and is logged.
func TestSendFile(t *testing.T) {
	content := make([]byte, 1<<20)
	_, _ = rand.Read(content)
	c := start(t, webtest.Setup{Register: func(s *web.Server) {
		s.File("/file", func(c echo.Context) error { return web.SendFile(c, `a "b"`+"\r\n.log", bytes.NewReader(content)) })
		s.File("/broken", func(c echo.Context) error {
			return web.SendFile(c, "a.log", io.MultiReader(bytes.NewReader(content[:64<<10]), iotest.ErrReader(errors.New("the node is gone"))))
		})
	}})
	browser := c.Browser(t).SignIn()
	response := browser.Stream(http.MethodGet, "/file", webtest.Navigation...)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes, %v, want the %d of the file", len(got), err, len(content))
	}
	if disposition := response.Header.Get("Content-Disposition"); !strings.HasPrefix(disposition, "attachment") || strings.ContainsAny(disposition, "\r\n") {
		t.Errorf("got disposition %q, want an attachment", disposition)
	}
	broken := browser.Stream(http.MethodGet, "/broken", webtest.Navigation...)
	defer broken.Body.Close()
	if _, err = io.ReadAll(broken.Body); err == nil {
		t.Error("a file that cannot be read to its end looks complete, want an error")
	}
	if log := c.Log.String(); !strings.Contains(log, "the node is gone") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}
