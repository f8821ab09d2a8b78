package charts

import (
	"math"
	"slices"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// SumPoints adds series with the same buckets. A sum is known if one of its points
// is: a pool that did not exist yet adds nothing.
func SumPoints(series ...[]history.Point) []history.Point {
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

// AnyAbove reports whether a known value exceeds least.
func AnyAbove(points []history.Point, least float64) bool {
	return slices.ContainsFunc(points, func(p history.Point) bool { return p.Known && p.Value > least })
}

// ChartTimes returns the times of points in Unix seconds.
func ChartTimes(points []history.Point) []int64 {
	times := make([]int64, len(points))
	for i, p := range points {
		times[i] = p.At.Unix()
	}
	return times
}

// ChartValues converts points of one resource to its displayed unit.
func ChartValues(resource string, points []history.Point) []views.ChartValue {
	values := make([]views.ChartValue, len(points))
	for i, p := range points {
		if p.Known {
			v := p.Value / HistoryUnit(resource)
			values[i] = views.ChartValue{Value: math.Round(v*1000) / 1000, Known: true, Text: format.Average(v)}
		}
	}
	return values
}

// HistoryUnit returns the size of the displayed unit of a resource (vCPU, GiB or
// device) in the unit of history.
func HistoryUnit(resource string) float64 {
	switch resource {
	case catalog.CPU:
		return 1000
	case catalog.Memory:
		return 1024
	}
	return 1
}

// ChartGaps converts the gaps of a range, where nothing is known.
func ChartGaps(gaps []history.Gap) []views.ChartGap {
	var all []views.ChartGap
	for _, g := range gaps {
		all = append(all, views.ChartGap{From: g.From.Unix(), To: g.To.Unix(), Why: g.Reason})
	}
	return all
}
