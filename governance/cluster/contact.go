package cluster

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Interval and timeout of the health check, and the age of the last answer at
// which the API server counts as unreachable.
const (
	contactInterval = time.Second
	contactTimeout  = 2 * time.Second
	contactMaxAge   = 4 * time.Second
)

// Contact measures when the API server last answered. A watch does not show it:
// over a broken network a watch stays silent for minutes.
type Contact struct {
	last atomic.Int64 // Unix nanoseconds; 0 before the first answer
}

// Age returns the time since the API server last answered. ok is false if it is
// unreachable or has never answered.
func (c *Contact) Age(now time.Time) (age time.Duration, ok bool) {
	last := c.last.Load()
	if last == 0 {
		return 0, false
	}
	age = max(0, now.Sub(time.Unix(0, last)))
	return age, age < contactMaxAge
}

// metric returns the metric of the age.
func (c *Contact) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kuota_cluster_contact_age_seconds", Help: "Time since the last response of the API server; +Inf before the first.",
	}, func() float64 {
		if c.last.Load() == 0 {
			return math.Inf(1)
		}
		age, _ := c.Age(time.Now())
		return age.Seconds()
	})
}

// run checks the health of the API server until ctx ends.
func (c *Contact) run(ctx context.Context, clients kubernetes.Interface) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, contactTimeout)
		defer cancel()
		if _, err := clients.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			c.last.Store(time.Now().UnixNano())
		}
	}, contactInterval)
}

// redialInterval is when a dial to an unreachable API server is repeated.
const redialInterval = 250 * time.Millisecond

// newRedialingCache returns a cache that is up to date soon after the API
// server is reachable again. By default, a reflector (client-go 0.36) waits up
// to a minute after several failures. With redialer a watch only takes long to
// connect and does not fail.
func newRedialingCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return redialer{next} })
	options.HTTPClient = nil // so that it is created from this config
	return cache.New(config, options)
}

// redialer repeats a dial until it succeeds or the context ends. It repeats
// reads only, although no request was sent when a dial fails.
type redialer struct{ next http.RoundTripper }

func (p redialer) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(request)
		var network *net.OpError
		if err == nil || request.Method != http.MethodGet || !errors.As(err, &network) || network.Op != "dial" {
			return response, err
		}
		if governance.Sleep(request.Context(), redialInterval) != nil {
			return nil, err
		}
	}
}
