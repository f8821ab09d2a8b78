package index

import (
	"kuota.dev/kuota/governance/tasks"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	tasksDesc       = prometheus.NewDesc("kuota_tasks", "Tasks by state. Absent until the informer caches have synced.", []string{"state"}, nil)
	elasticPodsDesc = prometheus.NewDesc("kuota_elastic_pods", "Pods of elastic tasks that use quota: those of the minimum, which are guaranteed, and growth. Absent until the informer caches have synced.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (x *Index) Describe(to chan<- *prometheus.Desc) {
	to <- tasksDesc
	to <- elasticPodsDesc
}

// Collect implements prometheus.Collector. Its cost depends on the number of
// queues and priority classes, not of tasks.
func (x *Index) Collect(to chan<- prometheus.Metric) {
	x.mu.Lock()
	complete, pods, states := x.workloadsComplete, x.elasticPods, map[tasks.State]int{}
	for _, y := range x.classes {
		for state, n := range y.states {
			states[state] += n
		}
	}
	x.mu.Unlock()
	if !complete {
		return
	}
	for _, state := range tasks.States {
		to <- prometheus.MustNewConstMetric(tasksDesc, prometheus.GaugeValue, float64(states[state]), string(state))
	}
	to <- prometheus.MustNewConstMetric(elasticPodsDesc, prometheus.GaugeValue, float64(pods.guaranteed), "guaranteed")
	to <- prometheus.MustNewConstMetric(elasticPodsDesc, prometheus.GaugeValue, float64(pods.growth), "growth")
}
