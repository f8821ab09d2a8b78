package web_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counted runs a server with metrics, with a page of many addresses and a stream
// that shows a number.
func counted(t *testing.T) (address string, registry *prometheus.Registry, tell func()) {
	t.Helper()
	registry = prometheus.NewRegistry()
	server, err := web.New(web.Options{
		Listener: listen(t, "127.0.0.1:0"), User: web.User{Name: "ada", Local: true}, Log: slog.New(slog.DiscardHandler),
		Chrome: func(echo.Context) views.Chrome { return views.Chrome{} }, Metrics: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	routes(server)
	var number atomic.Int64
	changed := make(chan struct{}, 1)
	status := func(context.Context) (templ.Component, error) { return templ.Raw("<p id=age>age</p>"), nil }
	part := func(context.Context) (templ.Component, error) {
		return templ.Raw(fmt.Sprintf("<p id=n>number %d</p>", number.Load())), nil
	}
	server.Page("/tasks/:namespace/:name", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	server.Events("/numbers/:which/events", func(c echo.Context) error {
		return server.Stream(c, web.Part{Changed: func(context.Context) <-chan struct{} { return changed }, Render: part}, status)
	})
	server.Events("/shared/events", func(c echo.Context) error {
		see := func(context.Context) (string, web.RenderFunc, error) {
			return "", part, nil
		}
		return server.Stream(c, web.Part{Shared: see}, status)
	})
	host, _ := run(t, server)
	return "http://" + host, registry, func() {
		number.Add(1)
		changed <- struct{}{}
	}
}

// scrape reads metrics like Prometheus.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	served := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer served.Close()
	response, err := http.Get(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value returns the metric with these labels, as names and values; for a histogram,
// the number of observations; 0 if there is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		matches := true
		for i := 0; i < len(labels); i += 2 {
			matches = matches && has[labels[i]] == labels[i+1]
		}
		if matches {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return 0
}

const requests = "kuota_http_request_duration_seconds"

func TestMetricsOfRequests(t *testing.T) {
	address, registry, _ := counted(t)
	for i := range 1000 {
		do(t, http.MethodGet, fmt.Sprintf("%s/tasks/team-%d/task-%d?page=%d", address, i, i, i), "")
	}
	do(t, http.MethodHead, address+"/tasks/a/b", "")
	do(t, "ODD", address+"/tasks/a/b", "")
	do(t, "ODDER", address+"/tasks/a/b", "")
	do(t, http.MethodGet, address+"/panic", "")
	do(t, http.MethodGet, address+"/broken", "")
	do(t, http.MethodGet, address+"/who", "", "Host", "evil.example")
	for i := range 50 {
		do(t, http.MethodGet, fmt.Sprintf("%s/nowhere/%d", address, i), "")
	}
	families := scrape(t, registry)
	for _, want := range []struct {
		method, route, code string
		count               float64
	}{
		{"GET", "/tasks/:namespace/:name", "200", 1000},
		{"HEAD", "/tasks/:namespace/:name", "200", 1},
		{"other", "/*", "405", 2},
		{"GET", "/panic", "500", 1},
		{"GET", "/broken", "500", 1},
		{"GET", "/who", "421", 1},
		{"GET", "/*", "404", 50},
	} {
		if got := value(families, requests, "method", want.method, "route", want.route, "code", want.code); got != want.count {
			t.Errorf("%s %s %s was counted %v times, not %v", want.method, want.route, want.code, got, want.count)
		}
	}
	if series := len(families[requests].GetMetric()); series != 7 {
		t.Errorf("%d series: %v", series, families[requests])
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// A canceled request does not count as successful.
func TestMetricsOfAClientThatLeft(t *testing.T) {
	registry := prometheus.NewRegistry()
	server, err := web.New(web.Options{
		Listener: listen(t, "127.0.0.1:0"), User: web.User{Name: "ada", Local: true}, Log: slog.New(slog.DiscardHandler),
		Chrome: func(echo.Context) views.Chrome { return views.Chrome{} }, Metrics: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	server.Page("/slow", func(c echo.Context) error {
		close(asked)
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	host, stop := run(t, server)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-asked; leave() }()
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
		t.Fatalf("answered %s", response.Status)
	}
	stop() // after all requests have ended
	if got := value(scrape(t, registry), requests, "route", "/slow", "code", "499"); got != 1 {
		t.Errorf("counted %v times: %v", got, scrape(t, registry)[requests])
	}
}

// Streams have their own counters, and no durations.
func TestMetricsOfStreams(t *testing.T) {
	address, registry, tell := counted(t)
	watch := func(path string) (lines <-chan string, leave func()) {
		response, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		return linesIn(t, response), func() { response.Body.Close() }
	}
	one, leaveOne := watch("/numbers/one/events")
	until(t, one, "number 0", 5*time.Second)
	two, leaveTwo := watch("/shared/events")
	until(t, two, "number 0", 5*time.Second)
	tell()
	until(t, one, "number 1", 5*time.Second)
	until(t, one, "age", 5*time.Second) // a beat does not count as an update

	families := scrape(t, registry)
	for route, updates := range map[string]float64{"/numbers/:which/events": 2, "/shared/events": 1} {
		if got := value(families, "kuota_stream_clients", "route", route); got != 1 {
			t.Errorf("%s has %v readers", route, got)
		}
		if got := value(families, "kuota_stream_updates_total", "route", route); got != updates {
			t.Errorf("%s was sent %v updates, not %v", route, got, updates)
		}
	}
	if got := value(families, "kuota_stream_render_seconds"); got < 3 {
		t.Errorf("%v renderings", got)
	}
	if series := families[requests].GetMetric(); len(series) != 0 {
		t.Errorf("a stream has a duration: %v", series)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}

	leaveOne()
	leaveTwo()
	for began := time.Now(); value(scrape(t, registry), "kuota_stream_clients", "route", "/shared/events")+value(scrape(t, registry), "kuota_stream_clients", "route", "/numbers/:which/events") != 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("readers that left still count")
		}
	}
}

// Without a registry, and with names that are registered already.
func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	start := func(with prometheus.Registerer) error {
		_, err := web.New(web.Options{
			Listener: listen(t, "127.0.0.1:0"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Chrome: func(echo.Context) views.Chrome { return views.Chrome{} }, Metrics: with,
		})
		return err
	}
	if err := start(nil); err != nil {
		t.Error(err)
	}
	if err := start(registry); err != nil {
		t.Error(err)
	}
	if err := start(registry); err == nil || !strings.Contains(err.Error(), "register metrics") {
		t.Errorf("a second server on the same registry: %v", err)
	}
}
