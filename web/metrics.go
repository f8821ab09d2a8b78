package web

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// streamKey marks requests whose response is an event stream.
const streamKey = "stream"

// statusClientClosed is the code of requests whose client disconnected before the
// response. HTTP has none; this is nginx's.
const statusClientClosed = 499

// methods are counted by name. All others count as one, as clients can send any.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// metrics are the metrics of HTTP and streams. The route label is the pattern,
// never the address: that bounds the series and keeps names out of them.
type metrics struct {
	requests *prometheus.HistogramVec // by method, route and code
	clients  *prometheus.GaugeVec     // by route
	updates  *prometheus.CounterVec   // by route
	renders  prometheus.Histogram
}

// newMetrics registers the metrics; a nil registerer skips that.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kuota_http_request_duration_seconds", Help: "Duration of HTTP requests, without event streams. Code 499: the client closed the connection.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route", "code"}),
		clients: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kuota_stream_clients", Help: "Open event streams.",
		}, []string{"route"}),
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kuota_stream_updates_total", Help: "Updates sent to open pages, without the periodic age of the data.",
		}, []string{"route"}),
		renders: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kuota_stream_render_seconds", Help: "Time to render a live part, once for all users who see the same.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
	}
	if registerer == nil {
		return m, nil
	}
	var errs []error
	for _, collector := range []prometheus.Collector{m.requests, m.clients, m.updates, m.renders} {
		errs = append(errs, registerer.Register(collector))
	}
	return m, errors.Join(errs...)
}

// measure is the outermost middleware, so that requests rejected by others count.
func (m *metrics) measure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // sets the code
		}
		if c.Get(streamKey) != nil {
			return nil
		}
		code := c.Response().Status
		if err != nil && !c.Response().Committed {
			code = statusClientClosed
		}
		m.requests.WithLabelValues(methodLabel(c.Request().Method), c.Path(), strconv.Itoa(code)).Observe(time.Since(began).Seconds())
		return nil
	}
}

func methodLabel(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// rendered observes one rendering of a live part.
func (m *metrics) rendered(began time.Time) { m.renders.Observe(time.Since(began).Seconds()) }
