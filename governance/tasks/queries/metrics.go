package queries

import (
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// verdicts counts explanations that were shown, and whether Kueue's own reason
// agrees. An open page is explained again at each change: the same explanation of
// the same task counts once.
var verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_task_verdicts_total", Help: "Explanations shown, each counted once until it changes, by whether Kueue's own reason agrees; unknown for a reason that Kuota does not know.",
}, []string{"agrees"})

// agreesLabels are the values of the label agrees.
var agreesLabels = map[explain.Agreement]string{explain.Agrees: "true", explain.Disagrees: "false", explain.UnknownReason: "unknown"}

func init() {
	metrics.Registry.MustRegister(verdicts)
	for _, agrees := range agreesLabels { // present from the start, so that the first one is an increase
		verdicts.WithLabelValues(agrees)
	}
}

// maxShown is how many tasks' last explanations are kept. Older ones count again.
const maxShown = 4000

// shownVerdict is the last explanation of a task that was shown, and Kueue's reason.
type shownVerdict struct {
	constraint explain.Constraint
	reason     string
}

// countShown counts an explanation, unless it was the last one shown of the task.
func (s *Service) countShown(t *tasks.Task, constraint explain.Constraint, agreement explain.Agreement) {
	verdict := shownVerdict{constraint, t.Reason}
	last, _ := s.shown.Get(t.Key())
	s.shown.Add(t.Key(), verdict)
	if last != verdict {
		verdicts.WithLabelValues(agreesLabels[agreement]).Inc()
	}
}
