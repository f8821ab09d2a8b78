package queries

import (
	"strconv"
	"sync"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// verdicts counts explanations that were given to people, and whether Kueue's own
// reason says the same. A page that is open is explained anew at each change: the
// same explanation of the same task counts once.
var verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_task_verdicts_total", Help: "Explanations shown, each counted once until it changes, by whether Kueue's own reason agrees.",
}, []string{"agrees"})

func init() {
	metrics.Registry.MustRegister(verdicts)
	for _, agrees := range []bool{true, false} { // there from the start, so that the first one is a change
		verdicts.WithLabelValues(strconv.FormatBool(agrees))
	}
}

// givenKept is how many tasks it is remembered of what was last said, twice at
// most. One that nobody looked at while as many others were counts again.
const maxShown = 4000

// given remembers what was last said of tasks. Its zero value is ready.
type shownVerdicts struct {
	mu         sync.Mutex
	now, older map[tasks.Key]shownVerdict
}

// saying is why a task does not start, as explained and in Kueue's word.
type shownVerdict struct {
	constraint explain.Constraint
	token      string
}

// count counts an explanation, unless it is what was last said of the task.
func (g *shownVerdicts) count(t *tasks.Task, constraint explain.Constraint, disagrees bool) {
	if g.changed(t.Key(), shownVerdict{constraint, t.Reason}) {
		verdicts.WithLabelValues(strconv.FormatBool(!disagrees)).Inc()
	}
}

// news takes in what is said of a task, and tells whether it was not said before.
func (g *shownVerdicts) changed(of tasks.Key, says shownVerdict) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.now[of]
	if !ok {
		last, ok = g.older[of]
		if g.now == nil || len(g.now) >= maxShown {
			g.now, g.older = map[tasks.Key]shownVerdict{}, g.now
		}
	}
	g.now[of] = says
	return !ok || last != says
}
