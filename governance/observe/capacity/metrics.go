package capacity

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	"github.com/prometheus/client_golang/prometheus"
)

// ScrapeLimit bounds how long a scrape waits for a snapshot.
const ScrapeLimit = 5 * time.Second

// The metrics of teams. Amounts are in the base units of Prometheus: cores, bytes and
// devices.
var (
	quotaDesc    = teamDesc("quota", "Nominal quota of a team.")
	usedDesc     = teamDesc("used", "Quota that the admitted tasks of a team use, own and borrowed.")
	borrowedDesc = teamDesc("borrowed", "Quota that a team borrows.")
	lentDesc     = teamDesc("lent", "Idle quota of a team that other teams borrow.")
	runningDesc  = prometheus.NewDesc("kuota_team_running_tasks", "Running tasks of a team.", []string{"team"}, nil)
	waitingDesc  = prometheus.NewDesc("kuota_team_waiting_tasks", "Waiting tasks of a team.", []string{"team"}, nil)
	oldestDesc   = prometheus.NewDesc("kuota_team_oldest_wait_seconds", "How long the task of a team waits that has waited longest; 0 without one.", []string{"team"}, nil)
)

func teamDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kuota_team_"+name, help+" In cores, bytes and devices.", []string{"team", "pool", "resource"}, nil)
}

// TeamMetrics exports the figures of teams, with their names, as pages show them. They
// are absent while the cluster cannot be read.
type TeamMetrics struct {
	Snapshot func(ctx context.Context) (*Snapshot, error)
	Waiting  func(in func(index.QueueKey) bool) map[index.QueueKey][]*tasks.Task
	Now      func() time.Time
}

// Describe implements prometheus.Collector.
func (m *TeamMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{quotaDesc, usedDesc, borrowedDesc, lentDesc, runningDesc, waitingDesc, oldestDesc} {
		to <- desc
	}
}

// Collect implements prometheus.Collector. There are four series for each resource of
// each pool of a team, and three for each team.
func (m *TeamMetrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), ScrapeLimit)
	defer cancel()
	snapshot, err := m.Snapshot(ctx)
	if err != nil {
		return
	}
	now, since := m.Now(), map[string]time.Time{} // by team
	for key, waiting := range m.Waiting(func(index.QueueKey) bool { return true }) {
		team := snapshot.teamOf.Of(tasks.Place{Namespace: key.Namespace, LocalQueue: key.Queue})
		for _, t := range waiting {
			if first, ok := since[team]; !ok || t.WaitingSince.Before(first) {
				since[team] = t.WaitingSince
			}
		}
	}
	for i := range snapshot.Teams {
		team := &snapshot.Teams[i]
		for _, r := range team.Resources {
			for desc, amount := range map[*prometheus.Desc]resources.Amount{quotaDesc: r.Nominal, usedDesc: r.Usage, borrowedDesc: r.Borrowed, lentDesc: r.LentToCohort} {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, BaseUnits(r.Resource, amount), team.Name, r.Flavor, r.Resource)
			}
		}
		wait := 0.0
		if first, ok := since[team.Name]; ok && !first.IsZero() {
			wait = max(0, now.Sub(first).Seconds())
		}
		to <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(team.Running), team.Name)
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(team.Waiting), team.Name)
		to <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, wait, team.Name)
	}
}

// BaseUnits returns an amount of quota.Resources in the base units of Prometheus.
func BaseUnits(resource string, amount resources.Amount) float64 {
	if resource == catalog.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
