package tasks

import (
	"fmt"
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
	Name: "kuota_task_verdicts_total", Help: "Explanations shown, each counted once until it changes, by whether Kueue's own reason agrees.",
}, []string{"agrees"})

func init() {
	metrics.Registry.MustRegister(verdicts)
	for _, agrees := range []bool{true, false} { // there from the start, so that the first one is a change
		verdicts.WithLabelValues(strconv.FormatBool(agrees))
	}
}

// RegisterMetrics has it told how many tasks there are.
func (s *Service) RegisterMetrics(with prometheus.Registerer) error {
	if err := with.Register(s.index); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

var tasksDesc = prometheus.NewDesc("kuota_tasks", "Tasks by state. Absent until the informer caches have synced.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (x *Index) Describe(to chan<- *prometheus.Desc) { to <- tasksDesc }

// Collect implements prometheus.Collector. It costs what the classes of all
// namespaces are, not what the tasks are.
func (x *Index) Collect(to chan<- prometheus.Metric) {
	x.mu.Lock()
	complete, states := x.complete, map[State]int{}
	for _, y := range x.classes {
		for state, n := range y.states {
			states[state] += n
		}
	}
	x.mu.Unlock()
	if !complete {
		return
	}
	for _, state := range States {
		to <- prometheus.MustNewConstMetric(tasksDesc, prometheus.GaugeValue, float64(states[state]), string(state))
	}
}

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
	if g.news(groupKey{t.Namespace, t.UID}, saying{constraint, t.Reason}) {
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
