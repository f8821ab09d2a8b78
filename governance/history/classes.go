package history

import (
	"context"
	"maps"
	"slices"
	"time"
)

// allTeams is the team of the rollups over all teams.
const allTeams = "*"

// classKey identifies one row of class_hours or class_days.
type classKey struct {
	team  string
	class string
	start int64 // of the hour or day in which the spans ended
}

// classRollups are changes of class_hours and class_days.
type classRollups struct{ hours, days map[classKey]*ClassStats }

// addRow adds a row of kind, began, ended, team and class.
func (c *classRollups) addRow(scan scanFunc) error {
	var kind, team, class string
	var began, ended int64
	if err := scan(&kind, &began, &ended, &team, &class); err != nil {
		return err
	}
	c.add(SpanKind(kind), began, ended, team, class)
	return nil
}

// add adds a span to its team and to allTeams.
func (c *classRollups) add(kind SpanKind, began, ended int64, team, class string) {
	if c.hours == nil {
		c.hours, c.days = map[classKey]*ClassStats{}, map[classKey]*ClassStats{}
	}
	one := spanStats(kind, 1, ended-began, ended-began)
	for _, team := range []string{team, allTeams} {
		for period, stats := range map[int64]map[classKey]*ClassStats{hour: c.hours, day: c.days} {
			key := classKey{team, class, floor(ended, period)}
			if stats[key] == nil {
				stats[key] = &ClassStats{}
			}
			stats[key].Add(one)
		}
	}
}

// spanStats returns the statistics of count waits or runs; millis is their sum.
func spanStats(kind SpanKind, count, millis, longest int64) ClassStats {
	if kind == Wait {
		return ClassStats{Waits: count, WaitMillis: millis, LongestWait: time.Duration(longest) * time.Millisecond}
	}
	return ClassStats{Runs: count, RunMillis: millis, LongestRun: time.Duration(longest) * time.Millisecond}
}

// addClassRollups adds c to the stored rollups.
func (t *tx) addClassRollups(c classRollups) error {
	for table, rollups := range map[string]map[classKey]*ClassStats{"class_hours": c.hours, "class_days": c.days} {
		var rows [][]any
		for key, s := range rollups {
			rows = append(rows, []any{key.team, key.start, key.class, s.Waits, s.WaitMillis, s.LongestWait.Milliseconds(),
				s.Runs, s.RunMillis, s.LongestRun.Milliseconds()})
		}
		onConflict := `ON CONFLICT (team, start, class) DO UPDATE SET
			waits = t.waits + excluded.waits, wait_ms = t.wait_ms + excluded.wait_ms,
			longest_wait = ` + t.greatest + `(t.longest_wait, excluded.longest_wait),
			runs = t.runs + excluded.runs, run_ms = t.run_ms + excluded.run_ms,
			longest_run = ` + t.greatest + `(t.longest_run, excluded.longest_run)`
		if err := t.insert(table+" AS t (team, start, class, waits, wait_ms, longest_wait, runs, run_ms, longest_run)", rows, onConflict, nil); err != nil {
			return err
		}
	}
	return nil
}

// subtractClassRollups subtracts c from the stored rollups. It computes a longest
// wait or run again if it can be one of those that are subtracted.
func (t *tx) subtractClassRollups(c classRollups) error {
	for _, table := range []struct {
		name    string
		rollups map[classKey]*ClassStats
		period  int64
	}{{"class_hours", c.hours, hour}, {"class_days", c.days, day}} {
		for key, s := range table.rollups {
			set, args := "", []any{}
			for _, kind := range []struct {
				name, count, sum, longest string
				n, millis, most           int64
			}{
				{string(Wait), "waits", "wait_ms", "longest_wait", s.Waits, s.WaitMillis, s.LongestWait.Milliseconds()},
				{string(Run), "runs", "run_ms", "longest_run", s.Runs, s.RunMillis, s.LongestRun.Milliseconds()},
			} {
				if kind.n == 0 {
					continue
				}
				if set != "" {
					set += ", "
				}
				set += kind.count + " = " + kind.count + " - ?, " + kind.sum + " = " + kind.sum + " - ?, " +
					kind.longest + " = CASE WHEN " + kind.longest + " > ? THEN " + kind.longest + ` ELSE COALESCE((
						SELECT MAX(ended - began) FROM spans WHERE ended >= ? AND ended < ? AND looped = 0 AND kind = ? AND class = ?`
				args = append(args, kind.n, kind.millis, kind.most, key.start, key.start+table.period, kind.name, key.class)
				if key.team != allTeams {
					set += " AND team = ?"
					args = append(args, key.team)
				}
				set += "), 0) END"
			}
			where := " WHERE team = ? AND start = ? AND class = ?"
			if err := t.exec("UPDATE "+table.name+" SET "+set+where, append(args, key.team, key.start, key.class)...); err != nil {
				return err
			}
			if err := t.exec("DELETE FROM "+table.name+where+" AND waits = 0 AND runs = 0", key.team, key.start, key.class); err != nil {
				return err
			}
		}
	}
	return nil
}

// ClassStats returns the statistics of all spans that ended in [from, to) and
// belong to no preemption loop, by priority class, in the order of their names.
// Teams nil selects all teams; "" is the team of tasks without one.
func (s *Store) ClassStats(ctx context.Context, teams []string, from, to time.Time) ([]ClassStats, error) {
	found := map[string]*ClassStats{}
	err := s.read(ctx, "sum waits and runs", func(t *tx) error {
		in := timeRange{toMillis(from), toMillis(to)}
		if in.from >= in.to {
			return nil
		}
		days, hours, rest := in.split()
		selected := slices.Compact(slices.Sorted(slices.Values(teams)))
		if teams == nil {
			selected = []string{allTeams}
		}
		return keyBatches(selected, func(list string, args []any) error {
			f := teamFilter{all: teams == nil, list: list, teams: args}
			if err := t.sumLoopRuns(f, in, found); err != nil {
				return err
			}
			for _, days := range days {
				if err := t.sumClassRollups("class_days", f, days, found); err != nil {
					return err
				}
			}
			for _, hours := range hours {
				if err := t.sumClassRollups("class_hours", f, hours, found); err != nil {
					return err
				}
			}
			for _, part := range rest {
				if err := t.sumSpans(f, part, found); err != nil {
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

// teamFilter restricts a query to teams.
type teamFilter struct {
	all   bool
	list  string // placeholders of teams
	teams []any  // allTeams if all is set
}

// where returns the condition on a table without rows of allTeams, and its arguments.
func (f teamFilter) where(args ...any) (string, []any) {
	if f.all {
		return "", args
	}
	return " AND team IN (" + f.list + ")", append(args, f.teams...)
}

// sumClassRollups adds whole hours or days.
func (t *tx) sumClassRollups(table string, f teamFilter, in timeRange, found map[string]*ClassStats) error {
	query := `SELECT class, CAST(SUM(waits) AS BIGINT), CAST(SUM(wait_ms) AS BIGINT), MAX(longest_wait),
			CAST(SUM(runs) AS BIGINT), CAST(SUM(run_ms) AS BIGINT), MAX(longest_run)
		FROM ` + table + ` WHERE team IN (` + f.list + `) AND start >= ? AND start < ? GROUP BY class`
	return t.query(query, append(slices.Clone(f.teams), in.from, in.to), func(scan scanFunc) error {
		var class string
		var waits, waitMillis, longestWait, runs, runMillis, longestRun int64
		if err := scan(&class, &waits, &waitMillis, &longestWait, &runs, &runMillis, &longestRun); err != nil {
			return err
		}
		stats := statsOf(found, class)
		stats.Add(spanStats(Wait, waits, waitMillis, longestWait))
		stats.Add(spanStats(Run, runs, runMillis, longestRun))
		return nil
	})
}

// sumSpans adds single spans.
func (t *tx) sumSpans(f teamFilter, in timeRange, found map[string]*ClassStats) error {
	where, args := f.where(in.from, in.to)
	query := `SELECT class, kind, COUNT(*), CAST(SUM(ended - began) AS BIGINT), MAX(ended - began)
		FROM spans WHERE ended >= ? AND ended < ? AND looped = 0` + where + ` GROUP BY class, kind`
	return t.query(query, args, func(scan scanFunc) error {
		var class, kind string
		var count, millis, longest int64
		if err := scan(&class, &kind, &count, &millis, &longest); err != nil {
			return err
		}
		statsOf(found, class).Add(spanStats(SpanKind(kind), count, millis, longest))
		return nil
	})
}

// sumLoopRuns adds the runs that preemption loops ended, by the last preemption of
// each loop.
func (t *tx) sumLoopRuns(f teamFilter, in timeRange, found map[string]*ClassStats) error {
	where, args := f.where(in.from, in.to)
	query := "SELECT class, CAST(SUM(runs) AS BIGINT) FROM loops WHERE last >= ? AND last < ?" + where + " GROUP BY class"
	return t.query(query, args, func(scan scanFunc) error {
		var class string
		var runs int64
		if err := scan(&class, &runs); err != nil {
			return err
		}
		if runs > 0 {
			statsOf(found, class).LoopRuns += runs
		}
		return nil
	})
}

func statsOf(found map[string]*ClassStats, class string) *ClassStats {
	if found[class] == nil {
		found[class] = &ClassStats{Class: class}
	}
	return found[class]
}
