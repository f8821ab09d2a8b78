package dashboard

import (
	"context"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"

	"k8s.io/apimachinery/pkg/util/cache"
)

const historyOff = "History is off. An operator can enable it with --history."

// usageSeries are the lines of the chart, bottom first.
var usageSeries = []struct {
	label, tone string
	measure     history.Measure
	line        bool
}{
	{"Own quota", "own", history.OwnBound, false},
	{"Borrowed", "borrowed", history.BorrowedBound, false},
	{"Used, not placed", "unplaced", history.Unplaced, false},
	{"Capacity", "capacity", history.Physical, true},
	{"Quota", "quota", history.Quota, true},
	{"Growth", "ok", history.Growth, true},
}

// usageChart returns usage and capacity of one resource over time, summed over
// pools. An error replaces the chart by a sentence. The caller keeps the cache for
// one live page: history is read again after a tenth of a bucket, since the past
// changes little.
func (h *Pages) usageChart(ctx context.Context, s *capacity.Snapshot, q figures.Query, resource string, kept *cache.Expiring) views.Chart {
	c := views.Chart{ID: "held-chart", Title: "Usage and capacity", Alone: true, Note: format.ResourceName(resource) + " " + q.Where() + ", " + q.Over.Words, Unit: format.Unit(resource), Stacked: true}
	if h.History == nil {
		c.Empty = historyOff
		return c
	}
	if chart, ok := kept.Get(resource); ok {
		return chart.(views.Chart)
	}
	read, err := h.readUsage(ctx, s, q, resource, c)
	if err != nil {
		c.Empty = console.SectionTrouble("History", err)
		return c
	}
	kept.Set(resource, read, q.Over.RefreshInterval())
	return read
}

func (h *Pages) readUsage(ctx context.Context, s *capacity.Snapshot, q figures.Query, resource string, c views.Chart) (views.Chart, error) {
	var keys []history.SeriesKey
	for i := range s.Pools {
		if p := &s.Pools[i]; q.Pool == "" || p.Name == q.Pool {
			for _, u := range p.Resources {
				for _, line := range usageSeries {
					if u.Resource == resource {
						keys = append(keys, history.SeriesKey{Pool: p.Name, Resource: resource, Measure: line.measure})
					}
				}
			}
		}
	}
	found, err := h.History.Series(ctx, keys, q.Over.From, q.Over.To, q.Over.Buckets)
	if err != nil {
		return c, err
	}
	gaps, err := charts.Gaps(ctx, h.History, q.Over.From, q.Over.To)
	if err != nil {
		return c, err
	}
	known := false
	for _, line := range usageSeries {
		var of [][]history.Point
		for _, key := range keys {
			if key.Measure == line.measure {
				of = append(of, found[key])
			}
		}
		points := charts.SumPoints(of...)
		for _, p := range points {
			known = known || p.Known
		}
		if c.Times == nil {
			c.Times = charts.ChartTimes(points)
		}
		if line.measure == history.Growth && !charts.AnyAbove(points, 0) {
			continue // few clusters have any
		}
		c.Series = append(c.Series, views.ChartSeries{Label: line.label, Tone: line.tone, Step: true, Line: line.line, Values: charts.ChartValues(resource, points)})
	}
	charts.WithoutLimitless(&c, resource)
	if !known {
		c.Empty = "No data on " + format.ResourceName(resource) + " " + q.Where() + ", " + q.Over.Words + "."
	}
	c.Gaps = charts.ChartGaps(gaps)
	return c, nil
}
