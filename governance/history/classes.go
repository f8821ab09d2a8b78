package history

import (
	"context"
	"maps"
	"slices"
	"time"
)

// everybody is the team of sums over all teams.
const everybody = "*"

// classKey is what sums are kept of.
type classKey struct {
	team  string
	class string
	start int64 // of the hour or day that spans ended in
}

// classSums are sums by day and by hour that are to be added to those kept.
type classSums struct{ hours, days map[classKey]*ClassStats }

func (c *classSums) add(kind SpanKind, began, ended int64, team, class string) {
	if c.hours == nil {
		c.hours, c.days = map[classKey]*ClassStats{}, map[classKey]*ClassStats{}
	}
	one := span(kind, 1, ended-began, ended-began)
	for _, team := range []string{team, everybody} {
		for period, sums := range map[int64]map[classKey]*ClassStats{hour: c.hours, day: c.days} {
			key := classKey{team, class, floor(ended, period)}
			if sums[key] == nil {
				sums[key] = &ClassStats{}
			}
			sums[key].Add(one)
		}
	}
}

// span is the sums of waits or of runs.
func span(kind SpanKind, count, millis, longest int64) ClassStats {
	if kind == Wait {
		return ClassStats{Waits: count, WaitMillis: millis, LongestWait: time.Duration(longest) * time.Millisecond}
	}
	return ClassStats{Runs: count, RunMillis: millis, LongestRun: time.Duration(longest) * time.Millisecond}
}

func (c *classSums) write(t *tx) error {
	for table, sums := range map[string]map[classKey]*ClassStats{"class_hours": c.hours, "class_days": c.days} {
		var rows [][]any
		for key, sum := range sums {
			rows = append(rows, []any{key.team, key.start, key.class, sum.Waits, sum.WaitMillis, sum.LongestWait.Milliseconds(),
				sum.Runs, sum.RunMillis, sum.LongestRun.Milliseconds()})
		}
		adding := `ON CONFLICT (team, start, class) DO UPDATE SET
			waits = t.waits + excluded.waits, wait_ms = t.wait_ms + excluded.wait_ms,
			longest_wait = ` + t.greatest + `(t.longest_wait, excluded.longest_wait),
			runs = t.runs + excluded.runs, run_ms = t.run_ms + excluded.run_ms,
			longest_run = ` + t.greatest + `(t.longest_run, excluded.longest_run)`
		if err := t.insert(table+" AS t (team, start, class, waits, wait_ms, longest_wait, runs, run_ms, longest_run)", rows, adding, nil); err != nil {
			return err
		}
	}
	return nil
}

// Classes are the sums of all spans that ended from one time until before
// another and are of no preemption loop, by class and in their order. Teams nil are all teams, "" is the team of
// what belongs to none.
func (s *Store) ClassStats(ctx context.Context, teams []string, from, to time.Time) ([]ClassStats, error) {
	found := map[string]*ClassStats{}
	err := s.read(ctx, "adding up waits and runs", func(t *tx) error {
		in := stretch{millis(from), millis(to)}
		if in.from >= in.to {
			return nil
		}
		days, hours, less := in.divide()
		sums := slices.Compact(slices.Sorted(slices.Values(teams)))
		if teams == nil {
			sums = []string{everybody}
		}
		return chunks(sums, func(list string, args []any) error {
			if err := t.loopRuns(teams == nil, list, args, in, found); err != nil {
				return err
			}
			for _, days := range days {
				if err := t.classes("class_days", list, args, days, found); err != nil {
					return err
				}
			}
			for _, hours := range hours {
				if err := t.classes("class_hours", list, args, hours, found); err != nil {
					return err
				}
			}
			for _, less := range less {
				if err := t.spans(teams == nil, list, args, less, found); err != nil {
					return err
				}
			}
			return nil
		})
	})
	classes := make([]ClassStats, 0, len(found))
	for _, class := range slices.Sorted(maps.Keys(found)) {
		classes = append(classes, *found[class])
	}
	return classes, err
}

// classes adds up whole hours or days.
func (t *tx) classes(table, list string, teams []any, in stretch, found map[string]*ClassStats) error {
	query := `SELECT class, CAST(SUM(waits) AS BIGINT), CAST(SUM(wait_ms) AS BIGINT), MAX(longest_wait),
			CAST(SUM(runs) AS BIGINT), CAST(SUM(run_ms) AS BIGINT), MAX(longest_run)
		FROM ` + table + ` WHERE team IN (` + list + `) AND start >= ? AND start < ? GROUP BY class`
	return t.each(query, append(slices.Clone(teams), in.from, in.to), func(scan func(...any) error) error {
		var class string
		var waits, waitMillis, longestWait, runs, runMillis, longestRun int64
		if err := scan(&class, &waits, &waitMillis, &longestWait, &runs, &runMillis, &longestRun); err != nil {
			return err
		}
		sums := of(found, class)
		sums.Add(span(Wait, waits, waitMillis, longestWait))
		sums.Add(span(Run, runs, runMillis, longestRun))
		return nil
	})
}

// spans adds up single spans.
func (t *tx) spans(all bool, list string, teams []any, in stretch, found map[string]*ClassStats) error {
	where, args := "", []any{in.from, in.to}
	if !all {
		where, args = " AND team IN ("+list+")", append(args, teams...)
	}
	query := `SELECT class, kind, COUNT(*), CAST(SUM(ended - began) AS BIGINT), MAX(ended - began)
		FROM spans WHERE ended >= ? AND ended < ? AND looped = 0` + where + ` GROUP BY class, kind`
	return t.each(query, args, func(scan func(...any) error) error {
		var class, kind string
		var count, millis, longest int64
		if err := scan(&class, &kind, &count, &millis, &longest); err != nil {
			return err
		}
		of(found, class).Add(span(SpanKind(kind), count, millis, longest))
		return nil
	})
}

func of(found map[string]*ClassStats, class string) *ClassStats {
	if found[class] == nil {
		found[class] = &ClassStats{Class: class}
	}
	return found[class]
}
