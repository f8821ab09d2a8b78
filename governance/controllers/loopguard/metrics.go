package loopguard

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	detected = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_preemption_loops_total", Help: "Preemption loops that were detected: Kueue preempted a workload again and again for one that it did not admit.",
	})
	holds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuota_preemption_loop_holds_total", Help: "Holds of the loop guard that ended, by how: admitted (the preemptor got its quota), ended (the preemptor finished or was deleted), expired, policy, restarted, or person.",
	}, []string{"end"})
)

func init() {
	metrics.Registry.MustRegister(detected, holds)
	for _, end := range []string{byAdmission, byEnd, byLimit, byPolicy, byRestart, byPerson} { // 0 from the start, so that the first one is a change
		holds.WithLabelValues(end)
	}
}

var activeDesc = prometheus.NewDesc("kuota_preemption_loops", "Preemption loops that go on, by state: Looping or Held.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (g *Guard) Describe(to chan<- *prometheus.Desc) { to <- activeDesc }

// Collect implements prometheus.Collector.
func (g *Guard) Collect(to chan<- prometheus.Metric) {
	counts := map[State]int{}
	for _, l := range g.Loops() {
		counts[l.State]++
	}
	for _, state := range []State{Looping, Held} {
		to <- prometheus.MustNewConstMetric(activeDesc, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}
