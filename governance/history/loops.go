package history

import (
	"maps"
	"slices"
)

// second is the resolution of Kueue's times, in milliseconds.
const second int64 = 1000

// recordLoops keeps the preemption loops of tasks. One that goes on is the same
// row, and takes in those that began within it.
func (t *tx) recordLoops(records []Record) error {
	type key struct {
		part  string
		since int64
	}
	type row struct {
		last        int64
		runs        int32
		team, class string
	}
	loops := map[key]row{}
	for _, r := range records {
		for _, l := range r.Loops {
			k := key{l.WorkloadUID, floor(millis(l.Since), second)}
			known := loops[k]
			loops[k] = row{max(known.last, floor(millis(l.Last), second)), max(known.runs, l.Runs), r.Task.Team, r.Task.PriorityClass}
		}
	}
	var rows [][]any
	for k, l := range loops {
		if err := t.exec("DELETE FROM loops WHERE part = ? AND since > ? AND since <= ?", k.part, k.since, l.last); err != nil {
			return err
		}
		rows = append(rows, []any{k.part, k.since, l.last, l.runs, l.team, l.class})
	}
	return t.insert("loops AS t (part, since, last, runs, team, class)", rows,
		"ON CONFLICT (part, since) DO UPDATE SET last = "+t.greatest+"(t.last, excluded.last), runs = "+t.greatest+"(t.runs, excluded.runs)", nil)
}

// leaveOut takes the spans of preemption loops out of the sums, as if they had
// been known to be of loops when they were recorded. It looks at the Workloads of
// these records only.
func (t *tx) leaveOut(records []Record) error {
	parts := map[string]bool{}
	for _, r := range records {
		for _, span := range r.Spans {
			parts[span.WorkloadUID] = true
		}
		for _, l := range r.Loops {
			parts[l.WorkloadUID] = true
		}
	}
	var loops [][]any
	err := chunks(slices.Sorted(maps.Keys(parts)), func(list string, args []any) error {
		return t.each("SELECT part, since, last FROM loops WHERE part IN ("+list+")", args, func(scan func(...any) error) error {
			var part string
			var since, last int64
			err := scan(&part, &since, &last)
			loops = append(loops, []any{part, since, last})
			return err
		})
	})
	if err != nil {
		return err
	}
	sums := classSums{}
	for _, loop := range loops {
		err := t.each("UPDATE spans SET looped = 1 WHERE part = ? AND looped = 0 AND began >= ? AND ended <= ? RETURNING kind, began, ended, team, class", loop, sums.scan)
		if err != nil {
			return err
		}
	}
	return sums.takeBack(t)
}

// takeBack subtracts sums from those kept. A longest time is looked for again
// where it may have been of what is taken back.
func (c *classSums) takeBack(t *tx) error {
	for _, table := range []struct {
		name   string
		sums   map[classKey]*ClassStats
		period int64
	}{{"class_hours", c.hours, hour}, {"class_days", c.days, day}} {
		for key, sum := range table.sums {
			set, args := "", []any{}
			for _, kind := range []struct {
				name, count, sum, longest string
				n, millis, most           int64
			}{
				{string(Wait), "waits", "wait_ms", "longest_wait", sum.Waits, sum.WaitMillis, sum.LongestWait.Milliseconds()},
				{string(Run), "runs", "run_ms", "longest_run", sum.Runs, sum.RunMillis, sum.LongestRun.Milliseconds()},
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
				if key.team != everybody {
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

// loopRuns adds up the runs that loops ended, by when these loops ended.
func (t *tx) loopRuns(all bool, list string, teams []any, in stretch, found map[string]*ClassStats) error {
	where, args := "", []any{in.from, in.to}
	if !all {
		where, args = " AND team IN ("+list+")", append(args, teams...)
	}
	query := "SELECT class, CAST(SUM(runs) AS BIGINT) FROM loops WHERE last >= ? AND last < ?" + where + " GROUP BY class"
	return t.each(query, args, func(scan func(...any) error) error {
		var class string
		var runs int64
		if err := scan(&class, &runs); err != nil {
			return err
		}
		if runs > 0 {
			of(found, class).LoopRuns += runs
		}
		return nil
	})
}
