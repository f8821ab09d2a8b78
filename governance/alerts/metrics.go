package alerts

import (
	"kuota.dev/kuota/governance/cluster/access"

	"github.com/prometheus/client_golang/prometheus"
)

var firingDesc = prometheus.NewDesc("kuota_alerts_firing", "Alerts that fire and are not silenced, by rule.", []string{"rule", "severity"}, nil)

// Describe implements prometheus.Collector.
func (s *Service) Describe(to chan<- *prometheus.Desc) { to <- firingDesc }

// Collect implements prometheus.Collector.
func (s *Service) Collect(to chan<- prometheus.Metric) {
	counts := map[Rule]int{}
	for _, a := range s.Firing(access.Scope{All: true}) {
		if a.Silence == nil {
			counts[Rule(a.Alert.Rule)]++
		}
	}
	for _, d := range Rules {
		to <- prometheus.MustNewConstMetric(firingDesc, prometheus.GaugeValue, float64(counts[d.Rule]), string(d.Rule), string(d.Severity))
	}
}
