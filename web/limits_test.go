package web_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/labstack/echo/v4"
)

func TestRequestLimits(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	session := "kuota=" + c.Browser(t).SignIn().Cookie("kuota").Value
	own := "Host: " + strings.TrimPrefix(c.URL, "http://") + "\r\nConnection: close\r\nCookie: " + session + "\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	large := "a=" + strings.Repeat("b", 2<<20)
	bomb := strings.Repeat("Cookie: x="+strings.Repeat("y", 900)+"\r\n", 100)
	for name, tc := range map[string]struct {
		sent string
		want int
	}{
		"a body that says it is too large": {"POST /form HTTP/1.1\r\n" + own + "Content-Length: 2097154\r\n\r\n" + large, http.StatusRequestEntityTooLarge},
		"a body that does not say so":      {"POST /write HTTP/1.1\r\n" + own + "Transfer-Encoding: chunked\r\n\r\n200002\r\n" + large + "\r\n0\r\n\r\n", http.StatusRequestEntityTooLarge},
		"a form that does not say so":      {"POST /form HTTP/1.1\r\n" + own + "Transfer-Encoding: chunked\r\n\r\n200002\r\n" + large + "\r\n0\r\n\r\n", http.StatusRequestEntityTooLarge},
		"a body that is announced only":    {"POST /form HTTP/1.1\r\n" + own + "Content-Length: 9000000000000000000\r\nExpect: 100-continue\r\n\r\n", http.StatusRequestEntityTooLarge},
		"a header":                         {"GET /me HTTP/1.1\r\n" + own + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"thousands of headers":             {"GET /me HTTP/1.1\r\n" + own + strings.Repeat("X: y\r\n", 20_000) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"hundreds of cookies":              {"GET /me HTTP/1.1\r\n" + own + bomb + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"as many cookies as fit":           {"GET /me HTTP/1.1\r\n" + own + bomb[:len(bomb)/5] + "\r\n", http.StatusOK},
		"thousands of small cookies":       {"GET /me HTTP/1.1\r\n" + own + "Cookie: " + strings.Repeat("a=b; ", 5_000) + "\r\n\r\n", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			if statuses, text := raw(t, c.URL, tc.sent); len(statuses) != 1 || statuses[0] != tc.want {
				t.Errorf("answers are %v, want %d: %.300s", statuses, tc.want, text)
			}
		})
	}
	if c.posts() != 0 {
		t.Error("something was saved")
	}
}

// A client that never finishes its request does not keep a connection.
func TestSlowSender(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	began := time.Now()
	go func() {
		_, err := io.WriteString(connection, "GET /me HTTP/1.1\r\nX: ")
		for err == nil {
			time.Sleep(200 * time.Millisecond)
			_, err = io.WriteString(connection, "y")
		}
	}()
	if err := connection.SetReadDeadline(began.Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// Bytes that are still on their way when the server closes answer with a reset.
	if text, err := io.ReadAll(connection); err != nil && !errors.Is(err, syscall.ECONNRESET) || strings.Contains(string(text), " 200 ") {
		t.Errorf("after %s: %v, %q", time.Since(began), err, text)
	}
	if took := time.Since(began); took < 11*time.Second {
		t.Errorf("a connection that a browser opened ahead lasts %s, and Chromium keeps it for 10 s", took)
	}
}

// Only the method of a request decides how it is handled.
func TestMethodOverride(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	b := c.Browser(t).SignIn()
	for _, header := range []string{"X-Http-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		if answer := b.Ask(http.MethodPost, "/me?_method=GET", "_method=GET", header, "GET"); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("a POST as a GET by %s: %s", header, answer.Status)
		}
		if answer := b.Ask(http.MethodGet, "/form?_method=POST&a=b", "", header, "POST"); !strings.HasPrefix(answer.Text, "0 fields") {
			t.Errorf("a GET as a POST by %s: %s, %s", header, answer.Status, answer.Text)
		}
	}
	if c.posts() != 0 {
		t.Error("something was saved")
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	own := "Host: " + strings.TrimPrefix(c.URL, "http://") + "\r\nConnection: close\r\nCookie: kuota=" + c.Browser(t).SignIn().Cookie("kuota").Value + "\r\n\r\n"
	for _, path := range []string{"/me", "/form", "/nowhere", "/panic", "/static/css/kuota.css", "/auth/signed-out"} {
		page := exchange(t, c.URL, "GET "+path+" HTTP/1.1\r\n"+own)
		head := exchange(t, c.URL, "HEAD "+path+" HTTP/1.1\r\n"+own)
		status, _, _ := strings.Cut(page, "\r\n")
		if !strings.HasPrefix(head, status+"\r\n") || !strings.HasSuffix(head, "\r\n\r\n") || strings.Count(head, "\r\n\r\n") != 1 {
			t.Errorf("%s: the page is %s, and its head %q", path, status, head)
		}
	}
}

// A page gives up on the cluster before the server closes the connection, so that its
// reader gets an error page. A stream has no such limit.
func TestPagesGiveUpInTime(t *testing.T) {
	t.Parallel()
	limits := map[string]time.Duration{}
	report := func(c echo.Context) error {
		if end, ok := c.Request().Context().Deadline(); ok {
			limits[c.Path()] = time.Until(end)
		}
		return c.NoContent(http.StatusNoContent)
	}
	b := webtest.Start(t, webtest.Setup{Register: func(s *web.Server) {
		s.Page("/page", report)
		s.Form("/limited", report, report)
		s.Events("/limited/events", report)
	}}).Browser(t).SignIn()
	b.Ask(http.MethodGet, "/page", "", webtest.Navigation...)
	b.Ask(http.MethodGet, "/limited", "", webtest.Navigation...)
	b.Stream(http.MethodGet, "/limited/events", webtest.Script...).Body.Close()
	if limit, ok := limits["/limited/events"]; ok {
		t.Errorf("a stream is limited to %s", limit)
	}
	for _, path := range []string{"/page", "/limited"} {
		if limit := limits[path]; limit <= 0 || limit > 25*time.Second {
			t.Errorf("%s is limited to %s, want less than 25 s", path, limit)
		}
	}
}
