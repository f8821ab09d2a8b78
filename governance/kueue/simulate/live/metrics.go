package live

import (
	"context"
	"errors"

	"kuota.dev/kuota/governance/kueue/simulate/worker"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var disagreements = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_simulation_disagreements_total", Help: "Explanations that a simulation with Kueue's scheduler contradicts, by the constraint that the explanation names.",
}, []string{"constraint"})

var questions = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "kuota_simulation_duration_seconds", Help: "Duration of questions to the simulation with Kueue's scheduler, with the time until it is their turn, by result: answered, timeout, memory, crashed, canceled or failed.",
	Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30},
}, []string{"result"})

func init() { metrics.Registry.MustRegister(disagreements, questions) }

// result returns the label of a question that ended with err.
func result(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, worker.ErrTimeout):
		return "timeout"
	case errors.Is(err, worker.ErrMemory):
		return "memory"
	case errors.Is(err, worker.ErrCrashed):
		return "crashed"
	case ctx.Err() != nil:
		return "canceled"
	}
	return "failed"
}
