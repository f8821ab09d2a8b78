package history

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// interval is a time over which an amount held.
type interval struct {
	holder int64
	stretch
	amount int64
}

// sums are integrals over periods, by holder and begin of the period.
type sums map[[2]int64]*sum

// sum is what each of so many periods in a row comes to.
type sum struct{ times, amount, known int64 }

// add adds an interval: a part of a period at each end, and between them as many
// whole ones as there are, in one row.
func (s sums) add(i interval, period int64) {
	whole, rest := i.whole(period)
	if whole.from < whole.to {
		s.of(i.holder, whole.from, (whole.to-whole.from)/period).add(i.amount, period)
	}
	for _, edge := range rest {
		if middle := ceil(edge.from, period); edge.from < middle && middle < edge.to {
			s.of(i.holder, floor(edge.from, period), 1).add(i.amount, middle-edge.from)
			edge.from = middle
		}
		s.of(i.holder, floor(edge.from, period), 1).add(i.amount, edge.to-edge.from)
	}
}

func (s sums) of(holder, start, times int64) *sum {
	key := [2]int64{holder, start}
	if s[key] == nil {
		s[key] = &sum{times: times}
	}
	return s[key]
}

func (s *sum) add(amount, millis int64) {
	s.amount += amount * millis
	s.known += millis
}

// keep keeps intervals that ended, and adds them to the hours and days that they
// lie in.
func (t *tx) keep(ended []interval) error {
	var rows [][]any
	hours, days := sums{}, sums{}
	for _, i := range ended {
		rows = append(rows, []any{i.holder, i.from, i.to, i.amount})
		hours.add(i, hour)
		days.add(i, day)
	}
	if err := t.insert("amounts (holder, began, ended, amount)", rows, "", nil); err != nil {
		return err
	}
	for table, sums := range map[string]sums{"amount_hours": hours, "amount_days": days} {
		rows = nil
		for key, sum := range sums {
			rows = append(rows, []any{key[0], key[1], sum.times, sum.amount, sum.known})
		}
		adding := "ON CONFLICT (holder, start) DO UPDATE SET amount_ms = t.amount_ms + excluded.amount_ms, known_ms = t.known_ms + excluded.known_ms"
		if err := t.insert(table+" AS t (holder, start, times, amount_ms, known_ms)", rows, adding, nil); err != nil {
			return err
		}
	}
	return nil
}

// Totals are the exact integrals of amounts from one time until another. Where the
// range begins or ends within an hour of which only the sum is kept, that hour
// counts by its share.
func (s *Store) Totals(ctx context.Context, holders []SeriesKey, from, to time.Time) (map[SeriesKey]Total, error) {
	totals := map[SeriesKey]Total{}
	for _, h := range holders {
		totals[h] = Total{Sum: new(big.Int)}
	}
	err := s.read(ctx, fmt.Sprintf("adding up amounts of %d holders", len(totals)), func(t *tx) error {
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
		found := map[int64]*integral{}
		for _, id := range ids {
			found[id] = &integral{}
		}
		if err := t.integrate(ids, in, known, found); err != nil {
			return err
		}
		for h, id := range ids {
			totals[h] = found[id].total()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return totals, nil
}

// integrate adds what amounts come to over a stretch.
func (t *tx) integrate(ids map[SeriesKey]int64, in stretch, known state, found map[int64]*integral) error {
	open, err := t.open(ids)
	if err != nil {
		return err
	}
	for id, o := range open {
		found[id].hold(o.amount, stretch{o.began, known.seen}.within(in))
	}
	days, hours, less := in.divide()
	return chunks(sorted(ids), func(list string, args []any) error {
		for _, days := range days {
			if err := t.wholes("amount_days", day, list, args, days, found); err != nil {
				return err
			}
		}
		for _, hours := range hours {
			if err := t.wholes("amount_hours", hour, list, args, hours, found); err != nil {
				return err
			}
		}
		for _, less := range less {
			if err := t.parts(list, args, less, known, found); err != nil {
				return err
			}
		}
		return nil
	})
}

func sorted(ids map[SeriesKey]int64) []int64 { return slices.Sorted(maps.Values(ids)) }

// last asks for the last row of each holder that begins before a time: the only
// one from before that may reach beyond it, since rows of a holder do not overlap.
// The limit is there for its side effect: databases look each holder up by itself.
func last(table, begin, list string) string {
	return fmt.Sprintf(`SELECT r.* FROM (SELECT h.id, (SELECT MAX(p.%[2]s) FROM %[1]s p WHERE p.holder = h.id AND p.%[2]s < ?) AS last
			FROM holders h WHERE h.id IN (%[3]s) LIMIT %[4]d) AS l
		JOIN %[1]s r ON r.holder = l.id AND r.%[2]s = l.last`, table, begin, list, most)
}

// reaching asks for the rows that begin in a stretch, and the last before it.
func reaching(table, begin, list string, ids []any, in stretch) (string, []any) {
	query := fmt.Sprintf("SELECT r.* FROM %[1]s r WHERE r.holder IN (%[3]s) AND r.%[2]s >= ? AND r.%[2]s < ? UNION ALL ", table, begin, list)
	return query + last(table, begin, list), slices.Concat(ids, []any{in.from, in.to, in.from}, ids)
}

// wholes adds whole hours or days. What begins in them is added by the database,
// in two halves that do not overflow.
func (t *tx) wholes(table string, period int64, list string, ids []any, in stretch, found map[int64]*integral) error {
	const half = 1 << 32
	query := fmt.Sprintf(`SELECT holder, CAST(SUM(amount_ms / %[1]d * n) AS BIGINT), CAST(SUM(amount_ms %% %[1]d * n) AS BIGINT), CAST(SUM(known_ms * n) AS BIGINT)
		FROM (SELECT holder, amount_ms, known_ms, CASE times WHEN 1 THEN 1 ELSE (%[2]s(start + times * %[3]d, CAST(? AS BIGINT)) - start) / %[3]d END AS n
			FROM %[4]s WHERE holder IN (%[5]s) AND start >= ? AND start < ?) AS whole
		GROUP BY holder`, half, t.least, period, table, list)
	err := t.each(query, slices.Concat([]any{in.to}, ids, []any{in.from, in.to}), func(scan func(...any) error) error {
		var id, high, low, known int64
		if err := scan(&id, &high, &low, &known); err != nil {
			return err
		}
		found[id].add(high, half)
		found[id].add(low, 1)
		found[id].known += known
		return nil
	})
	if err != nil {
		return err
	}
	return t.readRollups(last(table, "start", list), append([]any{in.from}, ids...), func(r rollup) {
		if n := (min(r.start+r.times*period, in.to) - in.from) / period; n > 0 {
			found[r.holder].add(r.amount, n)
			found[r.holder].known += r.known * n
		}
	})
}

// parts adds less than whole hours: from single intervals, or the share of an hour
// where those are not kept any more.
func (t *tx) parts(list string, ids []any, in stretch, known state, found map[int64]*integral) error {
	if in.from >= known.detail {
		return t.intervals(list, ids, in, func(i interval) { found[i.holder].hold(i.amount, i.within(in)) })
	}
	for from := in.from; from < in.to; from = floor(from, hour) + hour {
		start := floor(from, hour)
		part := min(in.to, start+hour) - from
		err := t.rollups("amount_hours", hour, list, ids, stretch{start, start + hour}, func(r rollup) {
			found[r.holder].share(r.amount, part, hour)
			found[r.holder].known += r.known * part / hour
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// intervals calls do for the intervals that reach into a stretch.
func (t *tx) intervals(list string, ids []any, in stretch, do func(interval)) error {
	rows, args := reaching("amounts", "began", list, ids, in)
	return t.each("SELECT holder, began, ended, amount FROM ("+rows+") AS rows_found", args, func(scan func(...any) error) error {
		var i interval
		err := scan(&i.holder, &i.from, &i.to, &i.amount)
		if err == nil && i.to > in.from {
			do(i)
		}
		return err
	})
}

// rollup is what each of so many hours or days in a row comes to.
type rollup struct{ holder, start, times, amount, known int64 }

// rollups calls do for the rows of hours or days that reach into a stretch.
func (t *tx) rollups(table string, period int64, list string, ids []any, in stretch, do func(rollup)) error {
	rows, args := reaching(table, "start", list, ids, in)
	return t.readRollups(rows, args, func(r rollup) {
		if r.start+r.times*period > in.from {
			do(r)
		}
	})
}

func (t *tx) readRollups(rows string, args []any, do func(rollup)) error {
	return t.each("SELECT holder, start, times, amount_ms, known_ms FROM ("+rows+") AS rows_found", args, func(scan func(...any) error) error {
		var r rollup
		err := scan(&r.holder, &r.start, &r.times, &r.amount, &r.known)
		if err == nil {
			do(r)
		}
		return err
	})
}

// integral is amount × ms, and the ms in which the amount is known.
type integral struct {
	sum   big.Int
	known int64
}

func (i *integral) add(amount, millis int64) {
	i.sum.Add(&i.sum, new(big.Int).Mul(big.NewInt(amount), big.NewInt(millis)))
}

// hold adds an amount that held over a stretch, which may be none.
func (i *integral) hold(amount int64, over stretch) {
	if over.from < over.to {
		i.add(amount, over.to-over.from)
		i.known += over.to - over.from
	}
}

// share adds part of what a whole comes to.
func (i *integral) share(amount, part, whole int64) {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part))
	i.sum.Add(&i.sum, product.Quo(product, big.NewInt(whole)))
}

func (i *integral) total() Total {
	return Total{Sum: &i.sum, Known: time.Duration(i.known) * time.Millisecond}
}
