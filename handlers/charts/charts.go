package charts

import (
	"context"
	"math"
	"slices"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/handlers/console"
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

// BarMax returns the upper end of the scale of bars of these amounts, without those that
// no cluster has: they are meant as no limit, and what is used would be a flat line.
func BarMax(resource string, amounts ...resources.Amount) float64 {
	most := resources.Amount(0)
	for _, amount := range amounts {
		if !quota.ExceedsAnyCluster(resource, amount) {
			most = max(most, amount)
		}
	}
	return float64(most)
}

// WithoutLimitless removes the values of a resource from a chart that no cluster has, and
// notes that.
func WithoutLimitless(c *views.Chart, resource string) {
	var removed []string
	for _, s := range c.Series {
		for j, v := range s.Values {
			if v.Known && quota.ExceedsAnyCluster(resource, amountOf(resource, v.Value)) {
				s.Values[j] = views.ChartValue{}
				removed = append(removed, s.Label)
			}
		}
	}
	for _, label := range slices.Compact(removed) {
		c.Note += ". " + label + " has no limit where its line is missing"
	}
}

// amountOf returns a value of a chart as an amount.
func amountOf(resource string, value float64) resources.Amount {
	if resources.InBytes(resource) {
		value *= float64(catalog.GiB)
	} else {
		value *= HistoryUnit(resource)
	}
	return resources.Amount(min(value, math.MaxInt64/2))
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
			values[i] = views.ChartValue{Value: math.Round(v*1000) / 1000, Known: true, Text: format.AverageOverTime(v)}
		}
	}
	return values
}

// HistoryUnit returns the size of the displayed unit of a resource (vCPU, GiB or
// device) in the unit of history.
func HistoryUnit(resource string) float64 { return float64(accounting.Unit(resource)) }

// Gaps reads the gaps of a range, of which the time before history begins is one.
func Gaps(ctx context.Context, past console.History, from, to time.Time) ([]history.Gap, error) {
	gaps, err := past.Gaps(ctx, from, to)
	if err != nil {
		return nil, err
	}
	since, err := past.Since(ctx)
	if since.After(from) && since.Before(to) {
		gaps = append([]history.Gap{{From: from, To: since}}, gaps...)
	}
	return gaps, err
}

// ChartGaps converts the gaps of a range, where nothing is known.
func ChartGaps(gaps []history.Gap) []views.ChartGap {
	var all []views.ChartGap
	for _, g := range gaps {
		all = append(all, views.ChartGap{From: g.From.Unix(), To: g.To.Unix(), Why: g.Reason})
	}
	return all
}
