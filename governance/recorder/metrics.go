package recorder

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuota_history_writes_total", Help: "Attempts to write history, by outcome.",
	}, []string{"outcome"})
	gaps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_history_gaps_total", Help: "Gaps that were recorded in the history: times of which nothing is known.",
	})
	written = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kuota_history_written_timestamp_seconds", Help: "Until when amounts are written into the history.",
	})
	waiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kuota_history_waiting", Help: "Moments and tasks that were seen and are not written into the history yet.",
	})
)

func init() { metrics.Registry.MustRegister(writes, gaps, written, waiting) }
