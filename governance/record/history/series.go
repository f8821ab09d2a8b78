package history

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Longest ranges, in milliseconds, that Series computes from single intervals and
// from hours. Longer ones are computed from days.
const (
	longestDetailed = 2 * day
	longestHourly   = 60 * day
)

// buckets divide a range into buckets of equal width; the last may be shorter.
type buckets struct {
	timeRange
	width int64
	unit  int64 // of the rows that they are computed from: 1, hour or day
}

// newBuckets divides a range into at most count buckets. If they are computed from
// hours or days, the range grows to whole ones. detail is state.detail.
func newBuckets(in timeRange, count int, detail int64) buckets {
	b := buckets{unit: 1}
	switch length := in.to - in.from; {
	case length > longestHourly:
		b.unit = day
	case length > longestDetailed || in.from < detail:
		b.unit = hour
	}
	b.timeRange = timeRange{floor(in.from, b.unit), ceil(in.to, b.unit)}
	n := int64(max(1, count))
	b.width = max(b.unit, ceil((b.to-b.from+n-1)/n, b.unit))
	return b
}

func (b buckets) count() int64 { return (b.to - b.from + b.width - 1) / b.width }

// bucket returns the range of the n-th bucket.
func (b buckets) bucket(n int64) timeRange {
	begin := b.from + n*b.width
	return timeRange{begin, begin + b.width}.intersect(b.timeRange)
}

// addOver adds an amount over a range to the buckets that the range overlaps.
func (b buckets) addOver(found []integral, amount int64, over timeRange) {
	over = over.intersect(b.timeRange)
	if over.from >= over.to {
		return
	}
	for n := (over.from - b.from) / b.width; n < int64(len(found)) && b.from+n*b.width < over.to; n++ {
		found[n].addOver(amount, over.intersect(b.bucket(n)))
	}
}

// Series returns the averages of series over at most count buckets of equal width.
// Ranges of up to two days are divided exactly, as long as single intervals are
// stored. Longer ones, and their buckets, begin and end at whole hours; above 60
// days at whole days of UTC. Growth is recorded from the first on; before, it is 0
// wherever Used is known.
func (s *Store) Series(ctx context.Context, keys []SeriesKey, from, to time.Time, count int) (map[SeriesKey][]Point, error) {
	series := map[SeriesKey][]Point{}
	err := s.read(ctx, fmt.Sprintf("read %d series", len(keys)), func(t *tx) error {
		in := timeRange{toMillis(from), toMillis(to)}
		if in.from >= in.to {
			return nil
		}
		known, err := t.state()
		if err != nil {
			return err
		}
		wanted := slices.Clone(keys)
		for _, k := range keys {
			if k.Measure == Growth {
				wanted = append(wanted, k.Of(Used))
			}
		}
		ids, err := t.seriesIDs(withUpper(wanted), false)
		if err != nil {
			return err
		}
		b := newBuckets(in, count, known.detail)
		found, err := t.series(ids, b, known)
		if err != nil {
			return err
		}
		for _, k := range keys {
			points := make([]Point, b.count())
			averages := found[ids[k]]
			if averages == nil {
				averages = make([]integral, len(points))
			}
			used, upper := found[ids[k.Of(Used)]], found[ids[k.upperKey()]]
			for n := range points {
				if upper != nil {
					averages[n].addUpper(&upper[n])
				}
				points[n].At = fromMillis(b.bucket(int64(n)).from)
				if k.Measure == Growth && used != nil {
					averages[n].known = used[n].known
				}
				if averages[n].known > 0 {
					points[n].Known, points[n].Value = true, averages[n].total().Average()
				}
			}
			series[k] = points
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return series, nil
}

// series returns the integrals of series over buckets, by series id.
func (t *tx) series(ids map[SeriesKey]int64, b buckets, known state) (map[int64][]integral, error) {
	found := map[int64][]integral{}
	for _, id := range ids {
		found[id] = make([]integral, b.count())
	}
	open, err := t.openAmounts(ids)
	if err != nil {
		return nil, err
	}
	for id, o := range open {
		b.addOver(found[id], o.amount, timeRange{o.began, known.seen})
	}
	return found, keyBatches(sortedIDs(ids), func(list string, args []any) error {
		if b.unit == 1 {
			return t.intervals(list, args, b.timeRange, func(i interval) { b.addOver(found[i.series], i.amount, i.timeRange) })
		}
		table := "amount_hours"
		if b.unit == day {
			table = "amount_days"
		}
		return t.rollups(table, b.unit, list, args, b.timeRange, func(r rollup) {
			if r.times > 1 {
				b.addOver(found[r.series], r.amount/b.unit, timeRange{r.start, r.start + r.times*b.unit})
				return
			}
			one := &found[r.series][(r.start-b.from)/b.width]
			one.add(r.amount, 1)
			one.known += r.known
		})
	})
}

// Usage returns the exact integrals of the selected series over each interval between
// two consecutive bounds, as Totals does, of those that have a value in it. Teams and
// pools that were deleted are among them.
func (s *Store) Usage(ctx context.Context, q UsageQuery, bounds []time.Time) ([]map[SeriesKey]Total, error) {
	all := make([]map[SeriesKey]Total, max(0, len(bounds)-1))
	err := s.read(ctx, fmt.Sprintf("sum usage over %d intervals", len(all)), func(t *tx) error {
		known, err := t.state()
		if err != nil {
			return err
		}
		var ids map[SeriesKey]int64
		for n := range all {
			all[n] = map[SeriesKey]Total{}
			// There is nothing before the first day: what was deleted since has many series.
			in := timeRange{max(toMillis(bounds[n]), floor(known.since, day)), toMillis(bounds[n+1])}
			if in.from >= in.to {
				continue
			}
			if ids == nil {
				if ids, err = t.selectSeries(q); err != nil {
					return err
				}
			}
			found, err := t.integrate(ids, in, known)
			if err != nil {
				return err
			}
			for k, id := range ids {
				if found[id].known > 0 {
					all[n][k] = found[id].total()
				}
			}
		}
		return nil
	})
	return all, err
}

// Recorded returns the pools and the resources that were ever recorded, sorted.
func (s *Store) Recorded(ctx context.Context) (pools, resources []string, err error) {
	err = s.read(ctx, "list recorded pools", func(t *tx) (err error) {
		const of = " FROM holders WHERE team = '' AND measure = ? ORDER BY 1"
		if pools, err = values[string](t, "SELECT DISTINCT pool"+of, string(Physical)); err == nil {
			resources, err = values[string](t, "SELECT DISTINCT resource"+of, string(Physical))
		}
		return err
	})
	return pools, resources, err
}

// selectSeries returns the ids of the selected series.
func (t *tx) selectSeries(q UsageQuery) (map[SeriesKey]int64, error) {
	ids := map[SeriesKey]int64{}
	var where conditions
	if q.Teams != nil {
		if len(q.Teams) == 0 {
			return ids, nil
		}
		where.in("team", q.Teams)
	}
	where.equal("pool", q.Pool)
	where.equal("resource", q.Resource)
	if len(q.Measures) > 0 {
		where.add("measure IN ("+placeholders(len(q.Measures))+")", anyOf(q.Measures)...)
	}
	return ids, t.query("SELECT id, team, pool, resource, measure FROM holders WHERE "+where.String(), where.args, addSeries(ids))
}
