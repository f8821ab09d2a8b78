package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Above is a sum of series, and an amount.
type Above struct {
	Keys   []SeriesKey
	Amount int64
}

// AboveSince returns since when each sum of series has been above its amount until the last
// sample: from where it always was, and the zero time where it is not. A gap counts as 0, so
// that none began before the end of one.
func (s *Store) AboveSince(ctx context.Context, sums []Above, from time.Time) ([]time.Time, error) {
	found := make([]time.Time, len(sums))
	err := s.read(ctx, fmt.Sprintf("find since when %d sums are above an amount", len(sums)), func(t *tx) error {
		known, err := t.state()
		if err != nil {
			return err
		}
		in := timeRange{toMillis(from), known.seen + 1} // with the last sample
		if in.from >= in.to {
			return nil
		}
		var keys []SeriesKey
		for _, sum := range sums {
			keys = append(keys, sum.Keys...)
		}
		ids, err := t.seriesIDs(withUpper(keys), false)
		if err != nil {
			return err
		}
		open, err := t.openAmounts(ids)
		if err != nil {
			return err
		}
		changes := map[int64]map[int64]int64{} // of each series: what is added at a time
		add := func(id, amount int64, over timeRange) {
			if over = over.intersect(in); over.from >= over.to {
				return
			}
			if changes[id] == nil {
				changes[id] = map[int64]int64{}
			}
			changes[id][over.from] += amount
			changes[id][over.to] -= amount
		}
		for id, o := range open {
			add(id, o.amount, timeRange{o.began, in.to})
		}
		if err := keyBatches(sortedIDs(ids), func(list string, args []any) error {
			return t.intervals(list, args, in, func(i interval) { add(i.series, i.amount, i.timeRange) })
		}); err != nil {
			return err
		}
		for n, sum := range sums {
			changed := map[int64]int64{}
			for _, k := range sum.Keys {
				for at, by := range changes[ids[k]] {
					changed[at] += by
				}
				for at, by := range changes[ids[k.upperKey()]] {
					changed[at] += by * lowerAmounts
				}
			}
			if at, above := aboveSince(changed, sum.Amount, in); above {
				found[n] = fromMillis(at)
			}
		}
		return nil
	})
	return found, err
}

// aboveSince returns since when a sum that begins with 0 and changes by these amounts is above
// an amount at the end of a range.
func aboveSince(changed map[int64]int64, amount int64, in timeRange) (since int64, above bool) {
	var sum int64
	for _, at := range slices.Sorted(maps.Keys(changed)) {
		if at >= in.to {
			break
		}
		sum += changed[at]
		if now := sum > amount; now != above {
			since, above = at, now
		}
	}
	return since, above
}
