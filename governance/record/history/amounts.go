package history

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// interval is a period in which a series had one value.
type interval struct {
	series int64
	timeRange
	amount int64
}

// amountRollups are integrals by series and start of the first period.
type amountRollups map[[2]int64]*amountRollup

// amountRollup is the integral over each of times consecutive periods.
type amountRollup struct{ times, amount, known int64 }

// add adds an interval: the partial periods at its ends, and one row for all whole
// periods between them.
func (s amountRollups) add(i interval, period int64) {
	whole, rest := i.splitPeriods(period)
	if whole.from < whole.to {
		s.of(i.series, whole.from, (whole.to-whole.from)/period).add(i.amount, period)
	}
	for _, edge := range rest {
		if middle := ceil(edge.from, period); edge.from < middle && middle < edge.to {
			s.of(i.series, floor(edge.from, period), 1).add(i.amount, middle-edge.from)
			edge.from = middle
		}
		s.of(i.series, floor(edge.from, period), 1).add(i.amount, edge.to-edge.from)
	}
}

func (s amountRollups) of(series, start, times int64) *amountRollup {
	key := [2]int64{series, start}
	if s[key] == nil {
		s[key] = &amountRollup{times: times}
	}
	return s[key]
}

func (r *amountRollup) add(amount, millis int64) {
	r.amount += amount * millis
	r.known += millis
}

// storeIntervals inserts intervals that ended, and adds them to the rollups of
// their hours and days.
func (t *tx) storeIntervals(ended []interval) error {
	var rows [][]any
	hours, days := amountRollups{}, amountRollups{}
	for _, i := range ended {
		rows = append(rows, []any{i.series, i.from, i.to, i.amount})
		hours.add(i, hour)
		days.add(i, day)
	}
	if err := t.insert("amounts (holder, began, ended, amount)", rows, "", nil); err != nil {
		return err
	}
	for table, rollups := range map[string]amountRollups{"amount_hours": hours, "amount_days": days} {
		rows = nil
		for key, r := range rollups {
			rows = append(rows, []any{key[0], key[1], r.times, r.amount, r.known})
		}
		onConflict := "ON CONFLICT (holder, start) DO UPDATE SET amount_ms = t.amount_ms + excluded.amount_ms, known_ms = t.known_ms + excluded.known_ms"
		if err := t.insert(table+" AS t (holder, start, times, amount_ms, known_ms)", rows, onConflict, nil); err != nil {
			return err
		}
	}
	return nil
}

// Totals returns the exact integrals of series over a range. If the range begins
// or ends within an hour of which only the rollup is stored, that hour counts
// proportionally.
func (s *Store) Totals(ctx context.Context, keys []SeriesKey, from, to time.Time) (map[SeriesKey]Total, error) {
	totals := map[SeriesKey]Total{}
	for _, k := range keys {
		totals[k] = Total{Sum: new(big.Int)}
	}
	err := s.read(ctx, fmt.Sprintf("sum %d series", len(totals)), func(t *tx) error {
		in := timeRange{toMillis(from), toMillis(to)}
		if in.from >= in.to {
			return nil
		}
		known, err := t.state()
		if err != nil {
			return err
		}
		ids, err := t.seriesIDs(withUpper(keys), false)
		if err != nil {
			return err
		}
		found, err := t.integrate(ids, in, known)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if id, ok := ids[k]; ok {
				found[id].addUpper(found[ids[k.upperKey()]])
				totals[k] = found[id].total()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return totals, nil
}

// integrate returns the integrals of series over a range, by series id.
func (t *tx) integrate(ids map[SeriesKey]int64, in timeRange, known state) (map[int64]*integral, error) {
	found := make(map[int64]*integral, len(ids))
	for _, id := range ids {
		found[id] = &integral{}
	}
	open, err := t.openAmounts(ids)
	if err != nil {
		return nil, err
	}
	for id, o := range open {
		found[id].addOver(o.amount, timeRange{o.began, known.seen}.intersect(in))
	}
	days, hours, rest := in.split()
	hours, less := complement(&days, hours, known)
	return found, keyBatches(sortedIDs(ids), func(list string, args []any) error {
		for _, part := range []struct {
			table  string
			period int64
			ranges []timeRange
			sign   int64
		}{{"amount_days", day, days, 1}, {"amount_hours", hour, hours, 1}, {"amount_hours", hour, less, -1}} {
			for _, in := range part.ranges {
				if err := t.sumRollups(part.table, part.period, list, args, in, part.sign, found); err != nil {
					return err
				}
			}
		}
		for _, part := range rest {
			if err := t.sumPartialHours(list, args, part, known, found); err != nil {
				return err
			}
		}
		return nil
	})
}

// complement replaces hours that are most of the first or last day of a range, such as
// those of a month of another time zone, with that day less its other hours: fewer rows.
// It extends days, and returns the hours to add and those to subtract.
func complement(days *[]timeRange, hours []timeRange, known state) (add, less []timeRange) {
	if len(*days) == 0 {
		return hours, nil
	}
	whole := &(*days)[0]
	first := floor(known.since, day) // rows of earlier days are being deleted
	for _, part := range hours {
		switch {
		case part.to-part.from <= day/2:
			add = append(add, part)
		case part.to == whole.from && whole.from-day >= first:
			whole.from -= day
			less = append(less, timeRange{whole.from, part.from})
		case part.from == whole.to && part.from >= first:
			whole.to += day
			less = append(less, timeRange{part.to, whole.to})
		default:
			add = append(add, part)
		}
	}
	return add, less
}

func sortedIDs(ids map[SeriesKey]int64) []int64 { return slices.Sorted(maps.Values(ids)) }

// lastBefore is the query for the last row of each series that begins before a
// time: the only earlier row that can reach beyond it, because rows of a series do
// not overlap. The LIMIT makes databases look up each series by itself.
func lastBefore(table, begin, list string) string {
	return fmt.Sprintf(`SELECT r.* FROM (SELECT h.id, (SELECT MAX(p.%[2]s) FROM %[1]s p WHERE p.holder = h.id AND p.%[2]s < ?) AS last
			FROM holders h WHERE h.id IN (%[3]s) LIMIT %[4]d) AS l
		JOIN %[1]s r ON r.holder = l.id AND r.%[2]s = l.last`, table, begin, list, maxBatch)
}

// candidates is the query for the rows that begin in a range and the last before it.
func candidates(table, begin, list string, ids []any, in timeRange) (string, []any) {
	query := fmt.Sprintf("SELECT r.* FROM %[1]s r WHERE r.holder IN (%[3]s) AND r.%[2]s >= ? AND r.%[2]s < ? UNION ALL ", table, begin, list)
	return query + lastBefore(table, begin, list), slices.Concat(ids, []any{in.from, in.to, in.from}, ids)
}

// sumRollups adds whole hours or days, or subtracts them with the sign -1. The database
// adds the rows that begin in the range, in two halves that do not overflow.
func (t *tx) sumRollups(table string, period int64, list string, ids []any, in timeRange, sign int64, found map[int64]*integral) error {
	const half = 1 << 32
	query := fmt.Sprintf(`SELECT holder, MIN(start), CAST(SUM(amount_ms / %[1]d * n) AS BIGINT), CAST(SUM(amount_ms %% %[1]d * n) AS BIGINT), CAST(SUM(known_ms * n) AS BIGINT)
		FROM (SELECT holder, start, amount_ms, known_ms, CASE times WHEN 1 THEN 1 ELSE (%[2]s(start + times * %[3]d, CAST(? AS BIGINT)) - start) / %[3]d END AS n
			FROM %[4]s WHERE holder IN (%[5]s) AND start >= ? AND start < ?) AS whole
		GROUP BY holder`, half, t.least, period, table, list)
	complete := map[any]bool{} // a row begins with the range, so that no earlier one reaches into it
	err := t.query(query, slices.Concat([]any{in.to}, ids, []any{in.from, in.to}), func(scan scanFunc) error {
		var id, first, high, low, known int64
		if err := scan(&id, &first, &high, &low, &known); err != nil {
			return err
		}
		complete[id] = first == in.from
		found[id].add(high, sign*half)
		found[id].add(low, sign)
		found[id].known += sign * known
		return nil
	})
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(ids), func(id any) bool { return complete[id] })
	return keyBatches(others, func(list string, ids []any) error {
		return t.scanRollups(lastBefore(table, "start", list), append([]any{in.from}, ids...), func(r rollup) {
			if n := (min(r.start+r.times*period, in.to) - in.from) / period; n > 0 {
				found[r.series].add(r.amount, sign*n)
				found[r.series].known += sign * r.known * n
			}
		})
	})
}

// sumPartialHours adds less than whole hours: from single intervals, or the share
// of an hour whose intervals are not stored any more.
func (t *tx) sumPartialHours(list string, ids []any, in timeRange, known state, found map[int64]*integral) error {
	if in.from >= known.detail {
		return t.intervals(list, ids, in, func(i interval) { found[i.series].addOver(i.amount, i.intersect(in)) })
	}
	for from := in.from; from < in.to; from = floor(from, hour) + hour {
		start := floor(from, hour)
		part := min(in.to, start+hour) - from
		err := t.rollups("amount_hours", hour, list, ids, timeRange{start, start + hour}, func(r rollup) {
			found[r.series].addShare(r.amount, part, hour)
			found[r.series].known += r.known * part / hour
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// intervals calls do for the intervals that overlap a range.
func (t *tx) intervals(list string, ids []any, in timeRange, do func(interval)) error {
	rows, args := candidates("amounts", "began", list, ids, in)
	return t.query("SELECT holder, began, ended, amount FROM ("+rows+") AS rows_found", args, func(scan scanFunc) error {
		var i interval
		err := scan(&i.series, &i.from, &i.to, &i.amount)
		if err == nil && i.to > in.from {
			do(i)
		}
		return err
	})
}

// rollup is a stored amountRollup with its key.
type rollup struct{ series, start, times, amount, known int64 }

// rollups calls do for the rows of hours or days that overlap a range.
func (t *tx) rollups(table string, period int64, list string, ids []any, in timeRange, do func(rollup)) error {
	rows, args := candidates(table, "start", list, ids, in)
	return t.scanRollups(rows, args, func(r rollup) {
		if r.start+r.times*period > in.from {
			do(r)
		}
	})
}

func (t *tx) scanRollups(rows string, args []any, do func(rollup)) error {
	return t.query("SELECT holder, start, times, amount_ms, known_ms FROM ("+rows+") AS rows_found", args, func(scan scanFunc) error {
		var r rollup
		err := scan(&r.series, &r.start, &r.times, &r.amount, &r.known)
		if err == nil {
			do(r)
		}
		return err
	})
}

// integral is amount × milliseconds, and the milliseconds in which the amount is
// known.
type integral struct {
	sum   big.Int
	known int64
}

func (i *integral) add(amount, millis int64) {
	i.sum.Add(&i.sum, new(big.Int).Mul(big.NewInt(amount), big.NewInt(millis)))
}

// addOver adds an amount over a range, which may be empty.
func (i *integral) addOver(amount int64, over timeRange) {
	if over.from < over.to {
		i.add(amount, over.to-over.from)
		i.known += over.to - over.from
	}
}

// addShare adds part/whole of amount.
func (i *integral) addShare(amount, part, whole int64) {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part))
	i.sum.Add(&i.sum, product.Quo(product, big.NewInt(whole)))
}

// addUpper adds the integral of the series of upperKey; nil for none.
func (i *integral) addUpper(upper *integral) {
	if upper != nil {
		i.sum.Add(&i.sum, new(big.Int).Mul(&upper.sum, big.NewInt(lowerAmounts)))
	}
}

func (i *integral) total() Total {
	return Total{Sum: &i.sum, Known: time.Duration(i.known) * time.Millisecond}
}
