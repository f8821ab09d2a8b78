package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrOutOfOrder is returned for a sample that is older than the last one.
var ErrOutOfOrder = errors.New("a later sample is recorded already")

// lowerAmounts bounds the amounts of one series: its integral over a day fits 64 bits. A
// second series, of upperKey, has the multiples of lowerAmounts, so that all amounts are
// stored exactly. Few series have one: quota that is meant as no limit, and resources that
// are counted in bytes.
const lowerAmounts = 1 << 36

// upperKey is the key of the second series of k.
func (k SeriesKey) upperKey() SeriesKey { return k.Of(k.Measure + upperPart) }

// upperPart ends the measure of an upperKey.
const upperPart = "/upper"

// withUpper returns keys, each with its upperKey.
func withUpper(keys []SeriesKey) []SeriesKey {
	all := slices.Clone(keys)
	for _, k := range keys {
		all = append(all, k.upperKey())
	}
	return all
}

// AppendSamples records samples in one transaction. They are in the order of time,
// none before SampledUntil, and afterwards SampledUntil is the time of the last. A
// series keeps its value until a sample changes it or a gap ends it; 0 is a value
// like any other.
func (s *Store) AppendSamples(ctx context.Context, samples []Sample) error {
	if len(samples) == 0 {
		return nil
	}
	return s.write(ctx, fmt.Sprintf("append %d samples", len(samples)), func(t *tx) error {
		known, err := t.state()
		if err != nil {
			return err
		}
		var keys, large []SeriesKey
		seen := known.seen
		for _, m := range samples {
			if toMillis(m.At) < seen {
				return fmt.Errorf("sample of %s, after %s: %w", m.At.Format(time.RFC3339Nano), fromMillis(seen).Format(time.RFC3339Nano), ErrOutOfOrder)
			}
			seen = toMillis(m.At)
			for _, a := range m.Amounts {
				keys = append(keys, a.SeriesKey)
				if a.Amount/lowerAmounts != 0 {
					large = append(large, a.SeriesKey.upperKey())
				}
			}
		}
		ids, err := t.seriesIDs(slices.Concat(keys, large), true)
		if err != nil {
			return err
		}
		uppers, err := t.seriesIDs(withUpper(keys), false) // of earlier samples too
		if err != nil {
			return err
		}
		maps.Copy(ids, uppers)
		open, err := t.openAmounts(ids)
		if err != nil {
			return err
		}
		var ended []interval
		changed := map[int64]bool{}
		for _, m := range samples {
			at := toMillis(m.At)
			set := func(id, amount int64) {
				before, exists := open[id]
				if exists && before.amount == amount {
					return
				}
				if exists && before.began < at {
					ended = append(ended, interval{id, timeRange{before.began, at}, before.amount})
				}
				open[id] = openAmount{at, amount}
				changed[id] = true
			}
			for _, a := range m.Amounts {
				set(ids[a.SeriesKey], a.Amount%lowerAmounts)
				if id, ok := ids[a.SeriesKey.upperKey()]; ok {
					set(id, a.Amount/lowerAmounts)
				}
			}
		}
		var rows [][]any
		for id := range changed {
			rows = append(rows, []any{id, open[id].began, open[id].amount})
		}
		onConflict := "ON CONFLICT (holder) DO UPDATE SET began = excluded.began, amount = excluded.amount"
		if err := t.insert("open_amounts (holder, began, amount)", rows, onConflict, nil); err != nil {
			return err
		}
		if err := t.storeIntervals(ended); err != nil {
			return err
		}
		since := known.since
		if since == 0 {
			since = toMillis(samples[0].At)
		}
		return t.exec("UPDATE state SET since = ?, seen = ?, summed = CASE WHEN summed < 0 THEN summed ELSE ? END", since, seen, seen)
	})
}

// endedPerCall is how many series end in one transaction.
const endedPerCall = 10_000

// RecordGap records a gap. Every series ends where the gap begins, or at the last
// sample if that is earlier. Adjacent gaps with the same reason become one. Many series
// end in several transactions, before the gap exists: where one fails, the next call ends
// the rest.
func (s *Store) RecordGap(ctx context.Context, gap Gap) error {
	from, to, reason := toMillis(gap.From), toMillis(gap.To), sanitize(gap.Reason)
	if from > to {
		return fmt.Errorf("history: record a gap: it begins at %s and ends before that, at %s", gap.From.Format(time.RFC3339), gap.To.Format(time.RFC3339))
	}
	more := true
	record := func(t *tx) error {
		ended, err := t.endSeries(&from)
		if more = ended == endedPerCall; more || err != nil {
			return err
		}
		if from == to {
			return nil
		}
		extended, err := t.execCount("UPDATE gaps SET began = "+t.least+"(began, ?), ended = "+t.greatest+"(ended, ?) WHERE ended >= ? AND began <= ? AND why = ?",
			from, to, from, to, reason)
		if err != nil || extended > 0 {
			return err
		}
		return t.exec("INSERT INTO gaps (began, ended, why) VALUES (?, ?, ?)", from, to, reason)
	}
	for more {
		if err := s.write(ctx, "record a gap", record); err != nil {
			return err
		}
	}
	return nil
}

// endSeries ends up to endedPerCall series at from, or at the last sample if that is
// earlier: then it sets from. It returns how many.
func (t *tx) endSeries(from *int64) (int, error) {
	known, err := t.state()
	if err != nil {
		return 0, err
	}
	open := map[int64]openAmount{}
	err = t.query(fmt.Sprintf("SELECT holder, began, amount FROM open_amounts ORDER BY holder LIMIT %d", endedPerCall), nil, openInto(open))
	if err != nil || len(open) == 0 {
		return 0, err
	}
	*from = min(*from, known.seen)
	var ended []interval
	for id, o := range open {
		if o.began < *from {
			ended = append(ended, interval{id, timeRange{o.began, *from}, o.amount})
		}
	}
	if err := t.storeIntervals(ended); err != nil {
		return 0, err
	}
	return len(open), t.exec("DELETE FROM open_amounts WHERE holder <= ?", slices.Max(slices.Collect(maps.Keys(open))))
}

// Gaps returns the gaps that overlap a range, the oldest first.
func (s *Store) Gaps(ctx context.Context, from, to time.Time) ([]Gap, error) {
	row := func(g *Gap) []any { return []any{timeColumn(&g.From), timeColumn(&g.To), &g.Reason} }
	return readList(ctx, s, "list gaps", row, "SELECT began, ended, why FROM gaps WHERE ended > ? AND began < ? ORDER BY began, ended", toMillis(from), toMillis(to))
}

// seriesIDs returns the ids of series in the table holders. Series without one get
// one if add is set, and are left out otherwise.
func (t *tx) seriesIDs(keys []SeriesKey, add bool) (map[SeriesKey]int64, error) {
	ids := map[SeriesKey]int64{}
	var rows [][]any
	unique := map[SeriesKey]bool{}
	for _, k := range keys {
		if !unique[k] {
			unique[k] = true
			rows = append(rows, []any{k.Team, k.Pool, k.Resource, string(k.Measure)})
		}
	}
	if err := t.queryWith("asked (team, pool, resource, measure)", rows, `SELECT h.id, h.team, h.pool, h.resource, h.measure
		FROM asked a JOIN holders h ON h.team = a.team AND h.pool = a.pool AND h.resource = a.resource AND h.measure = a.measure`, addSeries(ids)); err != nil {
		return nil, err
	}
	if !add || len(ids) == len(rows) {
		return ids, nil
	}
	var missing [][]any
	for k := range unique {
		if _, ok := ids[k]; !ok {
			missing = append(missing, []any{k.Team, k.Pool, k.Resource, string(k.Measure)})
		}
	}
	err := t.insert("holders (team, pool, resource, measure)", missing, "RETURNING id, team, pool, resource, measure", addSeries(ids))
	return ids, err
}

// addSeries returns a function that adds a row of the table holders to ids.
func addSeries(ids map[SeriesKey]int64) func(scanFunc) error {
	return func(scan scanFunc) error {
		var k SeriesKey
		var id int64
		err := scan(&id, &k.Team, &k.Pool, &k.Resource, &k.Measure)
		ids[k] = id
		return err
	}
}

// openAmount is the current value of a series and since when it has it.
type openAmount struct{ began, amount int64 }

// openInto reads rows of open_amounts.
func openInto(open map[int64]openAmount) func(scanFunc) error {
	return func(scan scanFunc) error {
		var id int64
		var o openAmount
		err := scan(&id, &o.began, &o.amount)
		open[id] = o
		return err
	}
}

// openAmounts returns the current values of these series by id.
func (t *tx) openAmounts(ids map[SeriesKey]int64) (map[int64]openAmount, error) {
	open := map[int64]openAmount{}
	read := openInto(open)
	query := "SELECT holder, began, amount FROM open_amounts"
	if len(ids) > maxBatch { // most of many series are those of what was deleted
		err := t.query(query, nil, read)
		wanted := sortedIDs(ids)
		maps.DeleteFunc(open, func(id int64, _ openAmount) bool {
			_, found := slices.BinarySearch(wanted, id)
			return !found
		})
		return open, err
	}
	return open, keyBatches(sortedIDs(ids), func(list string, args []any) error {
		return t.query(query+" WHERE holder IN ("+list+")", args, read)
	})
}
