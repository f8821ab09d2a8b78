package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPast is why a moment is refused that lies before what was seen already.
var ErrOutOfOrder = errors.New("amounts are known until later already")

// largest is the largest amount whose sum over a day fits 64 bits.
const largest = math.MaxInt64 / day

// Moments keeps what amounts became, in one transaction. Moments come in the order
// of time, none before Seen; until the last of them all is known afterwards. An
// amount holds until it is told anew or a gap ends it; 0 is an amount like any
// other.
func (s *Store) AppendSamples(ctx context.Context, moments []Sample) error {
	if len(moments) == 0 {
		return nil
	}
	return s.write(ctx, fmt.Sprintf("recording %d moments", len(moments)), func(t *tx) error {
		known, err := t.state()
		if err != nil {
			return err
		}
		var holders []SeriesKey
		seen := known.seen
		for _, m := range moments {
			if millis(m.At) < seen {
				return fmt.Errorf("the moment %s comes after %s: %w", m.At.Format(time.RFC3339Nano), moment(seen).Format(time.RFC3339Nano), ErrOutOfOrder)
			}
			seen = millis(m.At)
			for _, a := range m.Amounts {
				if a.Amount > largest || a.Amount < -largest {
					return fmt.Errorf("the amount %d of %v is beyond what can be added up", a.Amount, a.SeriesKey)
				}
				holders = append(holders, a.SeriesKey)
			}
		}
		ids, err := t.holders(holders, true)
		if err != nil {
			return err
		}
		open, err := t.open(ids)
		if err != nil {
			return err
		}
		var ended []interval
		changed := map[int64]bool{}
		for _, m := range moments {
			at := millis(m.At)
			for _, a := range m.Amounts {
				id := ids[a.SeriesKey]
				before, is := open[id]
				if is && before.amount == a.Amount {
					continue
				}
				if is && before.began < at {
					ended = append(ended, interval{id, stretch{before.began, at}, before.amount})
				}
				open[id] = opened{at, a.Amount}
				changed[id] = true
			}
		}
		var rows [][]any
		for id := range changed {
			rows = append(rows, []any{id, open[id].began, open[id].amount})
		}
		adding := "ON CONFLICT (holder) DO UPDATE SET began = excluded.began, amount = excluded.amount"
		if err := t.insert("open_amounts (holder, began, amount)", rows, adding, nil); err != nil {
			return err
		}
		if err := t.keep(ended); err != nil {
			return err
		}
		since := known.since
		if since == 0 {
			since = millis(moments[0].At)
		}
		return t.exec("UPDATE state SET since = ?, seen = ?", since, seen)
	})
}

// Gap tells that nothing is known from one time until another. All amounts end
// where it begins, which is when they were seen last at the latest. Gaps that
// touch, for the same reason, are one.
func (s *Store) RecordGap(ctx context.Context, gap Gap) error {
	from, to, why := millis(gap.From), millis(gap.To), clean(gap.Reason)
	if from > to {
		return fmt.Errorf("history: recording a gap: it begins at %s and ends before that, at %s", gap.From.Format(time.RFC3339), gap.To.Format(time.RFC3339))
	}
	return s.write(ctx, "recording a gap", func(t *tx) error {
		known, err := t.state()
		if err != nil {
			return err
		}
		open, err := t.open(nil)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			from = min(from, known.seen)
		}
		var ended []interval
		for id, o := range open {
			if o.began < from {
				ended = append(ended, interval{id, stretch{o.began, from}, o.amount})
			}
		}
		if err := t.keep(ended); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM open_amounts"); err != nil {
			return err
		}
		if from == to {
			return nil
		}
		longer, err := t.changed("UPDATE gaps SET began = "+t.least+"(began, ?), ended = "+t.greatest+"(ended, ?) WHERE ended >= ? AND began <= ? AND why = ?",
			from, to, from, to, why)
		if err != nil || longer > 0 {
			return err
		}
		return t.exec("INSERT INTO gaps (began, ended, why) VALUES (?, ?, ?)", from, to, why)
	})
}

// Gaps are those that lie in a range, whole or in part, in the order of time.
func (s *Store) Gaps(ctx context.Context, from, to time.Time) ([]Gap, error) {
	var gaps []Gap
	err := s.read(ctx, "looking up gaps", func(t *tx) error {
		query := "SELECT began, ended, why FROM gaps WHERE ended > ? AND began < ? ORDER BY began, ended"
		return t.each(query, []any{millis(from), millis(to)}, func(scan func(...any) error) error {
			var gap Gap
			var began, ended int64
			if err := scan(&began, &ended, &gap.Reason); err != nil {
				return err
			}
			gap.From, gap.To = moment(began), moment(ended)
			gaps = append(gaps, gap)
			return nil
		})
	})
	return gaps, err
}

// Seen is until when amounts are known; zero where none ever were.
func (s *Store) SampledUntil(ctx context.Context) (time.Time, error) {
	state, err := s.state(ctx)
	return moment(state.seen), err
}

// Current are the amounts that hold: those told last, unless a gap ended them.
func (s *Store) CurrentAmounts(ctx context.Context) (map[SeriesKey]int64, error) {
	current := map[SeriesKey]int64{}
	err := s.read(ctx, "looking up current amounts", func(t *tx) error {
		query := "SELECT h.team, h.pool, h.resource, h.measure, o.amount FROM open_amounts o JOIN holders h ON h.id = o.holder"
		return t.each(query, nil, func(scan func(...any) error) error {
			var h SeriesKey
			var amount int64
			if err := scan(&h.Team, &h.Pool, &h.Resource, &h.Measure, &amount); err != nil {
				return err
			}
			current[h] = amount
			return nil
		})
	})
	return current, err
}

// holders are the numbers of holders; those that have none get one, or are left
// out.
func (t *tx) holders(asked []SeriesKey, add bool) (map[SeriesKey]int64, error) {
	ids := map[SeriesKey]int64{}
	read := func(scan func(...any) error) error {
		var h SeriesKey
		var id int64
		if err := scan(&id, &h.Team, &h.Pool, &h.Resource, &h.Measure); err != nil {
			return err
		}
		ids[h] = id
		return nil
	}
	var rows [][]any
	known := map[SeriesKey]bool{}
	for _, h := range asked {
		if !known[h] {
			known[h] = true
			rows = append(rows, []any{h.Team, h.Pool, h.Resource, string(h.Measure)})
		}
	}
	if err := t.with("asked (team, pool, resource, measure)", rows, `SELECT h.id, h.team, h.pool, h.resource, h.measure
		FROM asked a JOIN holders h ON h.team = a.team AND h.pool = a.pool AND h.resource = a.resource AND h.measure = a.measure`, read); err != nil {
		return nil, err
	}
	if !add || len(ids) == len(rows) {
		return ids, nil
	}
	var missing [][]any
	for h := range known {
		if _, ok := ids[h]; !ok {
			missing = append(missing, []any{h.Team, h.Pool, h.Resource, string(h.Measure)})
		}
	}
	err := t.insert("holders (team, pool, resource, measure)", missing, "RETURNING id, team, pool, resource, measure", read)
	return ids, err
}

// opened is an amount that holds since a time.
type opened struct{ began, amount int64 }

// open are the amounts that hold of these holders, by their numbers; of all where
// ids is nil.
func (t *tx) open(ids map[SeriesKey]int64) (map[int64]opened, error) {
	open := map[int64]opened{}
	read := func(scan func(...any) error) error {
		var id int64
		var o opened
		if err := scan(&id, &o.began, &o.amount); err != nil {
			return err
		}
		open[id] = o
		return nil
	}
	query := "SELECT holder, began, amount FROM open_amounts"
	if ids == nil {
		return open, t.each(query, nil, read)
	}
	return open, chunks(sorted(ids), func(list string, args []any) error {
		return t.each(query+" WHERE holder IN ("+list+")", args, read)
	})
}
