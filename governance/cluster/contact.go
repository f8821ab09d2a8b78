package cluster

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
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

var ageDesc = prometheus.NewDesc("kuota_cluster_contact_age_seconds", "Time since the last response of the API server; +Inf before the first.", nil, nil)

// Describe implements prometheus.Collector.
func (c *Contact) Describe(to chan<- *prometheus.Desc) { to <- ageDesc }

// Collect implements prometheus.Collector.
func (c *Contact) Collect(to chan<- prometheus.Metric) {
	seconds := math.Inf(1)
	if c.last.Load() != 0 {
		age, _ := c.Age(time.Now())
		seconds = age.Seconds()
	}
	to <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, seconds)
}

// run checks the health of the API server until ctx ends.
func (c *Contact) run(ctx context.Context, clients kubernetes.Interface) {
	ticker := time.NewTicker(contactInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, contactTimeout)
		if _, err := clients.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(attempt); err == nil {
			c.last.Store(time.Now().UnixNano())
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
