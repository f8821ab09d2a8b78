package web_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// serve runs a server with a few routes. stop ends it and waits.
func serve(t *testing.T) (address string, stop func() time.Duration) {
	t.Helper()
	server, err := web.New(web.Options{
		Listener: listen(t, "127.0.0.1:0"), User: web.User{Name: "ada", Local: true}, Log: slog.New(slog.DiscardHandler),
		Chrome: func(echo.Context) views.Chrome { return views.Chrome{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	routes(server)
	address, stop = run(t, server)
	return "http://" + address, stop
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// routes registers a few routes of each kind.
func routes(server *web.Server) {
	server.Page("/who", func(c echo.Context) error { return c.String(http.StatusOK, "you are "+web.UserOf(c).Name) })
	server.Form("/write", func(c echo.Context) error {
		return c.String(http.StatusOK, "typed: "+server.Draft(c).Get("a"))
	}, func(c echo.Context) error {
		_, err := io.Copy(io.Discard, c.Request().Body)
		return err
	})
	server.Page("/panic", func(echo.Context) error { panic("a secret of the inside") })
	server.Page("/broken", func(c echo.Context) error {
		return web.Render(c, http.StatusOK, templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
			fmt.Fprint(w, "half a page")
			return fmt.Errorf("a secret of the inside")
		}))
	})
	server.Events("/stream/events", func(c echo.Context) error {
		part := func(context.Context) (templ.Component, error) {
			return templ.Raw("<p id=x>\n" + web.UserOf(c).Name + "</p>"), nil
		}
		return server.Stream(c, web.Part{Render: part}, part)
	})
}

// run serves until the test ends, or stop is called.
func run(t *testing.T, server *web.Server) (address string, stop func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Run(ctx) }()
	stop = func() time.Duration {
		began := time.Now()
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stopping: %v", err)
		}
		stopped <- nil
		return time.Since(began)
	}
	t.Cleanup(func() { stop() })
	return server.Address(), stop
}

func do(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// Requests with which another site could act through a user's browser, or that could
// overload the server, are refused. Plain requests are not.
func TestRequestChecks(t *testing.T) {
	address, _ := serve(t)
	port := address[strings.LastIndex(address, ":"):]
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
	}{
		"a form of our own":             {http.MethodPost, "/write", "a=b", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		"a command":                     {http.MethodPost, "/write", "a=b", nil, 200},
		"a form of another site":        {http.MethodPost, "/write", "a=b", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"an old browser's foreign form": {http.MethodPost, "/write", "a=b", []string{"Origin", "https://evil.example"}, 403},
		"an origin that is hidden":      {http.MethodPost, "/write", "a=b", []string{"Origin", "null"}, 403},
		"a name pointed at us":          {http.MethodGet, "/who", "", []string{"Host", "evil.example" + port}, 421},
		"a name that looks like us":     {http.MethodGet, "/who", "", []string{"Host", "127.0.0.1.evil.example"}, 421},
		"localhost":                     {http.MethodGet, "/who", "", []string{"Host", "localhost" + port}, 200},
		"IPv6":                          {http.MethodGet, "/who", "", []string{"Host", "[::1]" + port}, 200},
		"a forwarded host":              {http.MethodGet, "/who", "", []string{"X-Forwarded-Host", "evil.example"}, 200},
		"a method that is not one":      {"TRACE", "/who", "", nil, 405},
		"a page that is not there":      {http.MethodGet, "/nowhere", "", nil, 404},
		"a path out of the files":       {http.MethodGet, "/static/..%2f..%2fetc/passwd", "", nil, 404},
		"a body that is too large":      {http.MethodPost, "/write", strings.Repeat("x", 2<<20), nil, 413},
		"a panic":                       {http.MethodGet, "/panic", "", nil, 500},
		"a page that fails halfway":     {http.MethodGet, "/broken", "", nil, 500},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := do(t, tc.method, address+tc.path, tc.body, tc.headers...)
			if response.StatusCode != tc.want {
				t.Errorf("answer is %s, want %d", response.Status, tc.want)
			}
			if allow := response.Header.Get("Allow"); (allow == "GET, HEAD") != (tc.want == 405) {
				t.Errorf("allows %q", allow)
			}
			if strings.Contains(body, "secret") || strings.Contains(body, "half a page") {
				t.Errorf("the answer shows what is inside: %s", body)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	address, _ := serve(t)
	for accepts, want := range map[string]string{
		"gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0.01": "gzip", "gzip;q=1.0, *;q=0": "gzip",
		"gzip;q=0": "", "br;q=1, GZIP ; q=0.000": "", "identity": "", "": "",
	} {
		response, _ := do(t, http.MethodGet, address+"/static/css/kuota.css", "", "Accept-Encoding", accepts)
		if got := response.Header.Get("Content-Encoding"); got != want || response.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: got %q, varying by %q, want %q", accepts, got, response.Header.Get("Vary"), want)
		}
	}
}

func TestHeaders(t *testing.T) {
	address, _ := serve(t)
	for _, path := range []string{"/who", "/nowhere", "/panic"} {
		response, _ := do(t, http.MethodGet, address+path, "")
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin",
		} {
			if got := response.Header.Get(header); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q", path, header, got)
			}
		}
		if csp := response.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: the content security policy is %q", path, csp)
		}
	}
}

// A stream outlives the server's write limit, because each update extends it, and
// does not delay the shutdown.
func TestStreamEndsWithTheServer(t *testing.T) {
	address, stop := serve(t)
	response, err := http.Get(address + "/stream/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	first := make([]byte, 64)
	if _, err := io.ReadAtLeast(response.Body, first, len("event: fragment\ndata: <p id=x>\ndata: ada</p>")); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(first), "event: fragment\ndata: <p id=x>\ndata: ada</p>") {
		t.Errorf("the stream begins with %q", first)
	}
	if took := stop(); took > 30*time.Second {
		t.Errorf("stopping took %s with a stream open", took)
	}
}

func TestListensOnThisMachineOnly(t *testing.T) {
	_, err := web.New(web.Options{Listener: listen(t, "0.0.0.0:0"), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("listening for everybody without sign-in: %v", err)
	}
}
