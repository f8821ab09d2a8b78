package history

import (
	"context"
	"fmt"
	"time"
)

// Up to which lengths a series is made of single intervals and of hours; beyond it
// is made of days.
const (
	detailed = 2 * day
	hourly   = 60 * day
)

// buckets are times of equal length, but for the last, which may be shorter.
type buckets struct {
	stretch
	width int64
	unit  int64 // each begins with an hour or a day, where it is made of those
}

// divideBuckets divides a range into at most so many. Where they are made of hours
// or days, the range grows to whole ones.
func divideBuckets(in stretch, most int, detail int64) buckets {
	b := buckets{unit: 1}
	switch length := in.to - in.from; {
	case length > hourly:
		b.unit = day
	case length > detailed || in.from < detail:
		b.unit = hour
	}
	b.stretch = stretch{floor(in.from, b.unit), ceil(in.to, b.unit)}
	n := int64(max(1, most))
	b.width = max(b.unit, ceil((b.to-b.from+n-1)/n, b.unit))
	return b
}

func (b buckets) count() int64 { return (b.to - b.from + b.width - 1) / b.width }

// bucket is one of them, by its number.
func (b buckets) bucket(n int64) stretch {
	begin := b.from + n*b.width
	return stretch{begin, begin + b.width}.within(b.stretch)
}

// hold adds an amount that held over a stretch to the buckets it lies in.
func (b buckets) hold(found []integral, amount int64, over stretch) {
	over = over.within(b.stretch)
	if over.from >= over.to {
		return
	}
	for n := (over.from - b.from) / b.width; n < int64(len(found)) && b.from+n*b.width < over.to; n++ {
		found[n].hold(amount, over.within(b.bucket(n)))
	}
}

// Series are the averages of amounts over at most so many buckets of equal length.
// Ranges of up to two days are divided exactly, as long as single intervals are
// kept. Longer ones begin and end with whole hours, above 60 days with whole days
// of UTC, and so do their buckets.
func (s *Store) Series(ctx context.Context, holders []SeriesKey, from, to time.Time, count int) (map[SeriesKey][]Point, error) {
	series := map[SeriesKey][]Point{}
	err := s.read(ctx, fmt.Sprintf("reading a series of %d holders", len(holders)), func(t *tx) error {
		in := stretch{millis(from), millis(to)}
		if in.from >= in.to {
			return nil
		}
		known, err := t.state()
		if err != nil {
			return err
		}
		ids, err := t.holders(holders, false)
		if err != nil {
			return err
		}
		b := divideBuckets(in, count, known.detail)
		found, err := t.series(ids, b, known)
		if err != nil {
			return err
		}
		for _, h := range holders {
			points := make([]Point, b.count())
			averages := found[ids[h]]
			for n := range points {
				points[n].At = moment(b.bucket(int64(n)).from)
				if averages != nil && averages[n].known > 0 {
					points[n].Known, points[n].Value = true, averages[n].total().Average()
				}
			}
			series[h] = points
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return series, nil
}

// series are the integrals over buckets, by the numbers of holders.
func (t *tx) series(ids map[SeriesKey]int64, b buckets, known state) (map[int64][]integral, error) {
	found := map[int64][]integral{}
	for _, id := range ids {
		found[id] = make([]integral, b.count())
	}
	open, err := t.open(ids)
	if err != nil {
		return nil, err
	}
	for id, o := range open {
		b.hold(found[id], o.amount, stretch{o.began, known.seen})
	}
	return found, chunks(sorted(ids), func(list string, args []any) error {
		if b.unit == 1 {
			return t.intervals(list, args, b.stretch, func(i interval) { b.hold(found[i.holder], i.amount, i.stretch) })
		}
		table := "amount_hours"
		if b.unit == day {
			table = "amount_days"
		}
		return t.rollups(table, b.unit, list, args, b.stretch, func(r rollup) {
			if r.times > 1 {
				b.hold(found[r.holder], r.amount/b.unit, stretch{r.start, r.start + r.times*b.unit})
				return
			}
			one := &found[r.holder][(r.start-b.from)/b.width]
			one.add(r.amount, 1)
			one.known += r.known
		})
	})
}
