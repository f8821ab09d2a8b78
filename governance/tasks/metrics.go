package tasks

import (
	"strconv"
	"sync"

	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// verdicts counts explanations that were given to people, and whether Kueue's own
// reason says the same. A page that is open is explained anew at each change: the
// same explanation of the same task counts once.
var verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_task_verdicts_total", Help: "Explanations of tasks that were shown, each once until it changes, by whether Kueue's own reason agrees.",
}, []string{"agrees"})

func init() { metrics.Registry.MustRegister(verdicts) }

// givenKept is how many tasks it is remembered of what was last said, twice at
// most. One that nobody looked at while as many others were counts again.
const givenKept = 4000

// given remembers what was last said of tasks. Its zero value is ready.
type given struct {
	mu         sync.Mutex
	now, older map[groupKey]saying
}

// saying is why a task does not start, as explained and in Kueue's word.
type saying struct {
	constraint explain.Constraint
	token      string
}

// count counts an explanation, unless it is what was last said of the task.
func (g *given) count(t *Task, constraint explain.Constraint, disagrees bool) {
	if g.news(groupKey{t.Namespace, t.UID}, saying{constraint, t.Token}) {
		verdicts.WithLabelValues(strconv.FormatBool(!disagrees)).Inc()
	}
}

// news takes in what is said of a task, and tells whether it was not said before.
func (g *given) news(of groupKey, says saying) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.now[of]
	if !ok {
		last, ok = g.older[of]
		if g.now == nil || len(g.now) >= givenKept {
			g.now, g.older = map[groupKey]saying{}, g.now
		}
	}
	g.now[of] = says
	return !ok || last != says
}
