package recorder

import (
	"math"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/history"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// writtenUntil is the time of the last written sample in Unix milliseconds; 0 before the first.
var writtenUntil atomic.Int64

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuota_history_writes_total", Help: "Attempts to write history, by outcome.",
	}, []string{"outcome"})
	gaps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_history_gaps_total", Help: "Gaps recorded in the history: periods without data.",
	})
	lag = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kuota_history_lag_seconds", Help: "Time since the last sample that was written to history; NaN before the first.",
	}, func() float64 {
		until := writtenUntil.Load()
		if until == 0 {
			return math.NaN()
		}
		return time.Since(time.UnixMilli(until)).Seconds()
	})
	pending = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kuota_history_waiting", Help: "Samples, gaps, tasks and scale events that are not written to history yet.",
	})
)

// scaleEvents counts what was recorded, so that two replicas, or a restart, count an
// event once.
var scaleEvents = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_scale_events_total", Help: "Changes of the size of elastic tasks that were recorded in history, by cause.",
}, []string{"cause"})

func countScales(events []history.ScaleEvent) {
	for _, e := range events {
		scaleEvents.WithLabelValues(e.Cause).Inc()
	}
}

// The outcomes of an attempt to write.
const (
	outcomeWritten = "written"
	outcomeFailed  = "failed"
)

func init() {
	// Every series exists from the start: a counter that appears with its first
	// value hides that increase from rate().
	for _, outcome := range []string{outcomeWritten, outcomeFailed} {
		writes.WithLabelValues(outcome)
	}
	for _, cause := range v1alpha1.ScaleCauses {
		scaleEvents.WithLabelValues(string(cause))
	}
	for _, writer := range []string{writerSamples, writerGaps, writerTasks, writerScales, activity.Writer} {
		history.SetAsides.WithLabelValues(writer)
	}
	metrics.Registry.MustRegister(writes, gaps, lag, pending, scaleEvents, history.SetAsides)
}
