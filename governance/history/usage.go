package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
			found := make(map[int64]*integral, len(ids))
			for _, id := range ids {
				found[id] = &integral{}
			}
			if err := t.integrate(ids, in, known, found); err != nil {
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
	err = s.read(ctx, "list recorded pools", func(t *tx) error {
		return t.query("SELECT pool, resource FROM holders WHERE team = '' AND measure = ?", []any{string(Physical)}, func(scan scanFunc) error {
			var pool, resource string
			err := scan(&pool, &resource)
			pools, resources = append(pools, pool), append(resources, resource)
			return err
		})
	})
	for _, names := range []*[]string{&pools, &resources} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return pools, resources, err
}

// selectSeries returns the ids of the selected series.
func (t *tx) selectSeries(q UsageQuery) (map[SeriesKey]int64, error) {
	var where []string
	var args []any
	list := func(column string, values []string) {
		where = append(where, column+" IN ("+placeholders(len(values))+")")
		for _, value := range values {
			args = append(args, value)
		}
	}
	ids := map[SeriesKey]int64{}
	if q.Teams != nil {
		if len(q.Teams) == 0 {
			return ids, nil
		}
		list("team", q.Teams)
	}
	if q.Pool != "" {
		list("pool", []string{q.Pool})
	}
	if q.Resource != "" {
		list("resource", []string{q.Resource})
	}
	if len(q.Measures) > 0 {
		var measures []string
		for _, m := range q.Measures {
			measures = append(measures, string(m))
		}
		list("measure", measures)
	}
	query := "SELECT id, team, pool, resource, measure FROM holders"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return ids, t.query(query, args, func(scan scanFunc) error {
		var k SeriesKey
		var id int64
		err := scan(&id, &k.Team, &k.Pool, &k.Resource, &k.Measure)
		ids[k] = id
		return err
	})
}
