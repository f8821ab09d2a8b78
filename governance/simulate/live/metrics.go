package live

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var disagreements = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_simulation_disagreements_total", Help: "Explanations that a simulation with Kueue's scheduler contradicts, by the constraint that the explanation names.",
}, []string{"constraint"})

func init() { metrics.Registry.MustRegister(disagreements) }
