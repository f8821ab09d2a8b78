package history

import (
	"maps"
	"slices"
)

// second is the resolution of Kueue's times, in milliseconds.
const second int64 = 1000

// recordLoops records the preemption loops of tasks. A loop that goes on keeps its
// row and absorbs loops that began within it.
func (t *tx) recordLoops(records []Record) error {
	type key struct {
		workload string
		since    int64
	}
	type row struct {
		last        int64
		runs        int32
		team, class string
	}
	loops := map[key]row{}
	for _, r := range records {
		for _, l := range r.Loops {
			k := key{l.WorkloadUID, floor(toMillis(l.Since), second)}
			known := loops[k]
			loops[k] = row{max(known.last, floor(toMillis(l.Last), second)), max(known.runs, l.Runs), r.Task.Team, r.Task.PriorityClass}
		}
	}
	var rows [][]any
	for k, l := range loops {
		if err := t.exec("DELETE FROM loops WHERE part = ? AND since > ? AND since <= ?", k.workload, k.since, l.last); err != nil {
			return err
		}
		rows = append(rows, []any{k.workload, k.since, l.last, l.runs, l.team, l.class})
	}
	return t.insert("loops AS t (part, since, last, runs, team, class)", rows,
		"ON CONFLICT (part, since) DO UPDATE SET last = "+t.greatest+"(t.last, excluded.last), runs = "+t.greatest+"(t.runs, excluded.runs)", nil)
}

// excludeLoopSpans subtracts the spans of preemption loops from the class
// statistics, as if the loops had been known when the spans were recorded. It
// reads the Workloads of these records only.
func (t *tx) excludeLoopSpans(records []Record) error {
	workloads := map[string]bool{}
	for _, r := range records {
		for _, s := range r.Spans {
			workloads[s.WorkloadUID] = true
		}
		for _, l := range r.Loops {
			workloads[l.WorkloadUID] = true
		}
	}
	var loops [][]any
	err := keyBatches(slices.Sorted(maps.Keys(workloads)), func(list string, args []any) error {
		return t.query("SELECT part, since, last FROM loops WHERE part IN ("+list+")", args, func(scan scanFunc) error {
			var workload string
			var since, last int64
			err := scan(&workload, &since, &last)
			loops = append(loops, []any{workload, since, last})
			return err
		})
	})
	if err != nil {
		return err
	}
	stats := classRollups{}
	for _, loop := range loops {
		err := t.query("UPDATE spans SET looped = 1 WHERE part = ? AND looped = 0 AND began >= ? AND ended <= ? RETURNING kind, began, ended, team, class", loop, stats.addRow)
		if err != nil {
			return err
		}
	}
	return t.subtractClassRollups(stats)
}
