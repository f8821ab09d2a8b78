package queries

import (
	"sync"

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

// maxShown is how many tasks' last explanations are kept, twice at most. Older ones
// count again.
const maxShown = 4000

// shownVerdicts keeps the last explanation that was shown of each task. Its zero
// value is ready.
type shownVerdicts struct {
	mu         sync.Mutex
	now, older map[tasks.Key]shownVerdict
}

// shownVerdict is an explanation and Kueue's reason.
type shownVerdict struct {
	constraint explain.Constraint
	token      string
}

// count counts an explanation, unless it was the last one shown of the task.
func (g *shownVerdicts) count(t *tasks.Task, constraint explain.Constraint, agreement explain.Agreement) {
	if g.changed(t.Key(), shownVerdict{constraint, t.Reason}) {
		verdicts.WithLabelValues(agreesLabels[agreement]).Inc()
	}
}

// changed records an explanation, and reports whether it differs from the last one.
func (g *shownVerdicts) changed(of tasks.Key, verdict shownVerdict) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.now[of]
	if !ok {
		last, ok = g.older[of]
		if g.now == nil || len(g.now) >= maxShown {
			g.now, g.older = map[tasks.Key]shownVerdict{}, g.now
		}
	}
	g.now[of] = verdict
	return !ok || last != verdict
}
