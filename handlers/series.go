package handlers

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/views"
)

// Capacity is what pages ask about what the cluster has and who holds it.
type Capacity interface {
	// Within is the cluster as of now, as all see it who have this scope.
	Within(ctx context.Context, scope access.Scope) (*capacity.Snapshot, error)
}

// History is what pages ask about what was.
type History interface {
	// ClassStats are the waits and runs that ended in a range, of these teams or, for
	// nil, of all.
	ClassStats(ctx context.Context, teams []string, from, to time.Time) ([]history.ClassStats, error)
	// Tasks are task records, the newest first, and Timeline one of them with its events,
	// the oldest first.
	Tasks(ctx context.Context, q history.Query) ([]history.Task, error)
	Timeline(ctx context.Context, uid string) (task history.Task, steps []history.Event, found bool, err error)
	Series(ctx context.Context, holders []history.SeriesKey, from, to time.Time, buckets int) (map[history.SeriesKey][]history.Point, error)
	Totals(ctx context.Context, holders []history.SeriesKey, from, to time.Time) (map[history.SeriesKey]history.Total, error)
	Gaps(ctx context.Context, from, to time.Time) ([]history.Gap, error)
	// Since is from when there is history; zero for none.
	Since(ctx context.Context) (time.Time, error)
}

// sumPoints adds series of the same buckets. A sum is known where one of them is:
// a pool that was not there yet has nothing to add.
func sumPoints(series ...[]history.Point) []history.Point {
	var sum []history.Point
	for _, points := range series {
		if sum == nil {
			sum = make([]history.Point, len(points))
		}
		for i, p := range points {
			if i < len(sum) {
				sum[i].At = p.At
				sum[i].Known = sum[i].Known || p.Known
				if p.Known {
					sum[i].Value += p.Value
				}
			}
		}
	}
	return sum
}

// chartTimes are the times of points as charts have them.
func chartTimes(points []history.Point) []int64 {
	times := make([]int64, len(points))
	for i, p := range points {
		times[i] = p.At.Unix()
	}
	return times
}

// chartValues are points of one resource in the unit that people count it in.
func chartValues(resource string, points []history.Point) []views.ChartValue {
	values := make([]views.ChartValue, len(points))
	for i, p := range points {
		if p.Known {
			v := p.Value / historyUnit(resource)
			values[i] = views.ChartValue{Value: math.Round(v*1000) / 1000, Known: true, Text: average(v)}
		}
	}
	return values
}

// historyUnit is how much of what history counts a resource in is one for people:
// vCPU, GiB or a device.
func historyUnit(resource string) float64 {
	switch resource {
	case catalog.CPU:
		return 1000
	case catalog.Memory:
		return 1024
	}
	return 1
}

// average is an average for people: two decimals at most.
func average(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return quota.Thousands(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// chartGaps are the gaps of a range, where nothing is known.
func chartGaps(gaps []history.Gap) []views.ChartGap {
	var all []views.ChartGap
	for _, g := range gaps {
		all = append(all, views.ChartGap{From: g.From.Unix(), To: g.To.Unix(), Why: g.Reason})
	}
	return all
}

// unitOf is what many of a resource are counted in.
func unitOf(resource string) string { return quota.Unit(resource, 2) }
