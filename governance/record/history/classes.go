package history

import (
	"context"
	"fmt"
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
	took := time.Duration(ended-began) * time.Millisecond
	one := ClassStats{Runs: 1, RunMillis: ended - began, LongestRun: took}
	if kind == Wait {
		one = ClassStats{Waits: 1, WaitMillis: ended - began, LongestWait: took}
	}
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

// row returns the fields of the columns of rollups.
func (c *ClassStats) row() []any {
	return []any{&c.Waits, &c.WaitMillis, durationColumn(&c.LongestWait), &c.Runs, &c.RunMillis, durationColumn(&c.LongestRun)}
}

// addClassRollups adds c to the stored rollups.
func (t *tx) addClassRollups(c classRollups) error {
	for table, rollups := range map[string]map[classKey]*ClassStats{"class_hours": c.hours, "class_days": c.days} {
		var rows [][]any
		for key, s := range rollups {
			rows = append(rows, append([]any{key.team, key.start, key.class}, s.row()...))
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
			for table, parts := range map[string][]timeRange{"class_days": days, "class_hours": hours} {
				for _, part := range parts {
					if err := t.sumClassRollups(table, f, part, found); err != nil {
						return err
					}
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
	return addStats(t, found, query, append(slices.Clone(f.teams), in.from, in.to), (*ClassStats).row)
}

// addStats adds the rows of a query, whose first column is the class, to found.
func addStats(t *tx, found map[string]*ClassStats, query string, args []any, row func(*ClassStats) []any) error {
	rows, err := list(t, func(c *ClassStats) []any { return append([]any{&c.Class}, row(c)...) }, query, args...)
	for _, stats := range rows {
		if found[stats.Class] == nil {
			found[stats.Class] = &ClassStats{Class: stats.Class}
		}
		found[stats.Class].Add(stats)
	}
	return err
}

// sumSpans adds single spans.
func (t *tx) sumSpans(f teamFilter, in timeRange, found map[string]*ClassStats) error {
	where, args := f.where(in.from, in.to)
	sums := func(kind SpanKind) string {
		took := fmt.Sprintf("CASE kind WHEN '%s' THEN ended - began END", kind) // NULL for the others
		return fmt.Sprintf("COUNT(%[1]s), COALESCE(CAST(SUM(%[1]s) AS BIGINT), 0), COALESCE(MAX(%[1]s), 0)", took)
	}
	query := "SELECT class, " + sums(Wait) + ", " + sums(Run) + " FROM spans WHERE ended >= ? AND ended < ? AND looped = 0" + where + " GROUP BY class"
	return addStats(t, found, query, args, (*ClassStats).row)
}

// sumLoopRuns adds the runs that preemption loops ended, by the last preemption of
// each loop.
func (t *tx) sumLoopRuns(f teamFilter, in timeRange, found map[string]*ClassStats) error {
	where, args := f.where(in.from, in.to)
	query := "SELECT class, CAST(SUM(runs) AS BIGINT) FROM loops WHERE last >= ? AND last < ? AND runs > 0" + where + " GROUP BY class"
	return addStats(t, found, query, args, func(c *ClassStats) []any { return []any{&c.LoopRuns} })
}
