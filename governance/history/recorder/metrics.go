package recorder

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// written is until when history is written, in Unix milliseconds; 0 before.
var written atomic.Int64

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuota_history_writes_total", Help: "Attempts to write history, by outcome.",
	}, []string{"outcome"})
	gaps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_history_gaps_total", Help: "Gaps recorded in the history: periods without data.",
	})
	lag = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kuota_history_lag_seconds", Help: "Time since the last moment written to history; NaN before the first.",
	}, func() float64 {
		until := written.Load()
		if until == 0 {
			return math.NaN()
		}
		return time.Since(time.UnixMilli(until)).Seconds()
	})
	waiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kuota_history_waiting", Help: "Moments and tasks observed and not yet written to history.",
	})
)

func init() { metrics.Registry.MustRegister(writes, gaps, lag, waiting) }
