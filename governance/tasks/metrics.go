package tasks

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// verdicts counts explanations that were given to people, and whether Kueue's own
// reason says the same.
var verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_task_verdicts_total", Help: "Explanations of tasks that were shown, by whether Kueue's own reason agrees.",
}, []string{"agrees"})

func init() { metrics.Registry.MustRegister(verdicts) }

func count(disagrees bool) { verdicts.WithLabelValues(strconv.FormatBool(!disagrees)).Inc() }
