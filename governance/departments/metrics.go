package departments

import (
	"context"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of departments, each with all teams below it. Amounts are in the base units of
// Prometheus: cores, bytes and devices.
var (
	quotaDesc    = departmentDesc("quota", "Quota of a department.")
	usedDesc     = departmentDesc("used", "Quota that the admitted tasks of a department use, own and borrowed.")
	borrowedDesc = departmentDesc("borrowed", "What a department uses beyond its quota.")
	lentDesc     = departmentDesc("lent", "Idle quota of a department that is used outside of it.")
	reserveDesc  = departmentDesc("reserve", "Quota of a department that is not allocated to its teams and departments.")
	runningDesc  = prometheus.NewDesc("kuota_department_running_tasks", "Running tasks of a department.", []string{"department"}, nil)
	waitingDesc  = prometheus.NewDesc("kuota_department_waiting_tasks", "Waiting tasks of a department.", []string{"department"}, nil)
)

func departmentDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kuota_department_"+name, help+" In cores, bytes and devices.", []string{"department", "pool", "resource"}, nil)
}

// Metrics exports the figures of departments, with their names, as pages show them. They
// are absent while the cluster cannot be read.
type Metrics struct {
	Figures func(ctx context.Context) (map[string]Figures, error) // of all departments
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{quotaDesc, usedDesc, borrowedDesc, lentDesc, reserveDesc, runningDesc, waitingDesc} {
		to <- desc
	}
}

// Collect implements prometheus.Collector. There are five series for each resource of each pool of
// a department, and two for each department.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), capacity.ScrapeLimit)
	defer cancel()
	figures, err := m.Figures(ctx)
	if err != nil {
		return
	}
	for name, f := range figures {
		for _, r := range f.Resources {
			for desc, amount := range map[*prometheus.Desc]resources.Amount{quotaDesc: r.Quota, usedDesc: r.Used, borrowedDesc: r.Borrowed, lentDesc: r.Lent, reserveDesc: r.Reserve} {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, capacity.BaseUnits(r.Resource, amount), name, r.Flavor, r.Resource)
			}
		}
		to <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(f.Running), name)
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(f.Waiting), name)
	}
}
