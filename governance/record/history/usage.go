package history

import (
	"context"
	"fmt"
	"time"
)

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
