package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// RecordTasks records tasks in one transaction. The last state of a task wins,
// except that FinishedAt and DeletedAt keep their value when the new one is zero.
// Events and spans that are recorded already are left as they are, so the same
// records can be passed again; spans that a later record attributes to a
// preemption loop are subtracted from the class statistics. A few hundred tasks
// per call are well within the call's timeout.
func (s *Store) RecordTasks(ctx context.Context, records []Record) error {
	return s.write(ctx, fmt.Sprintf("record %d tasks", len(records)), func(t *tx) error {
		if err := t.recordOutside(records); err != nil { // before the tasks, which it compares with
			return err
		}
		ids, err := t.recordTasks(records)
		if err != nil {
			return err
		}
		if err := t.moveAudited(slices.Collect(maps.Keys(ids))); err != nil {
			return err
		}
		if err := t.recordEvents(records, ids); err != nil {
			return err
		}
		for _, record := range []func([]Record) error{t.recordSpans, t.recordLoops, t.excludeLoopSpans, t.recordUsage} {
			if err := record(records); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordTasks returns the ids of the tasks by UID.
func (t *tx) recordTasks(records []Record) (map[string]int64, error) {
	var tasks []Task
	indexes := map[string]int{}
	for _, r := range records {
		if r.Task.UID == "" {
			return nil, fmt.Errorf("task %s/%s has no UID", r.Task.Namespace, r.Task.Name)
		}
		i, again := indexes[r.Task.UID]
		if !again {
			indexes[r.Task.UID] = len(tasks)
			tasks = append(tasks, r.Task)
			continue
		}
		before := tasks[i]
		tasks[i] = r.Task
		if r.Task.FinishedAt.IsZero() {
			tasks[i].FinishedAt = before.FinishedAt
		}
		if r.Task.DeletedAt.IsZero() {
			tasks[i].DeletedAt = before.DeletedAt
		}
		if len(r.Task.Pools) == 0 {
			tasks[i].Pools = before.Pools
		}
		if len(r.Task.Requests) == 0 {
			tasks[i].Requests = before.Requests
		}
		tasks[i].RunTime, tasks[i].Preemptions = max(before.RunTime, r.Task.RunTime), max(before.Preemptions, r.Task.Preemptions)
		if before.SubmittedAt.Before(r.Task.SubmittedAt) {
			tasks[i].SubmittedAt = before.SubmittedAt
		}
	}
	var rows [][]any
	for _, k := range tasks {
		rows = append(rows, k.row())
	}
	ids := map[string]int64{}
	err := t.insert("tasks ("+taskColumns+")", rows,
		`ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, kind = excluded.kind, name = excluded.name, team = excluded.team,
			class = excluded.class, priority = excluded.priority, queue = excluded.queue, state = excluded.state,
			pools = CASE WHEN excluded.pools IN ('null', '[]') THEN tasks.pools ELSE excluded.pools END,
			asked = CASE WHEN excluded.asked IN ('null', '{}') THEN tasks.asked ELSE excluded.asked END,
			submitted = `+t.least+`(tasks.submitted, excluded.submitted),
			ended = CASE WHEN excluded.ended = 0 THEN tasks.ended ELSE excluded.ended END,
			gone = CASE WHEN excluded.gone = 0 THEN tasks.gone ELSE excluded.gone END,
			preemptions = `+t.greatest+`(tasks.preemptions, excluded.preemptions), ran_ms = `+t.greatest+`(tasks.ran_ms, excluded.ran_ms),
			submitter = CASE WHEN excluded.submitter = '' THEN tasks.submitter ELSE excluded.submitter END
		RETURNING uid, id`,
		func(scan scanFunc) error {
			var uid string
			var id int64
			err := scan(&uid, &id)
			ids[uid] = id
			return err
		})
	return ids, err
}

func (t *tx) recordEvents(records []Record, ids map[string]int64) error {
	type key struct {
		task          int64
		workload, typ string
		at            int64
	}
	indexes := map[key]int{}
	var events []Event
	var tasks []int64
	for _, r := range records {
		for _, e := range r.Events {
			k := key{ids[r.Task.UID], e.WorkloadUID, e.Type, toMillis(e.At)}
			i, again := indexes[k]
			if again {
				events[i].merge(e)
				continue
			}
			indexes[k] = len(events)
			events, tasks = append(events, e), append(tasks, k.task)
		}
	}
	var rows [][]any
	for i, e := range events {
		rows = append(rows, append(e.row(), tasks[i]))
	}
	// One row stands for all preemptions of one second, as in Event.merge.
	return t.insert("steps AS t ("+eventColumns+", task)", rows,
		`ON CONFLICT (task, part, what, at) DO UPDATE SET
			ran_ms = CASE WHEN t.nth_last > 0 AND excluded.nth_first > t.nth_last AND t.ran_ms >= 0 AND excluded.ran_ms >= 0
				THEN t.ran_ms + excluded.ran_ms ELSE `+t.greatest+`(t.ran_ms, excluded.ran_ms) END,
			nth_first = CASE WHEN t.nth_first = 0 THEN excluded.nth_first ELSE `+t.least+`(t.nth_first, excluded.nth_first) END,
			nth_last = `+t.greatest+`(t.nth_last, excluded.nth_last)
		WHERE excluded.nth_first > 0 AND (t.nth_first = 0 OR excluded.nth_first < t.nth_first OR excluded.nth_last > t.nth_last)`, nil)
}

// merge merges another preemption of the same second, or the same event, into e.
func (e *Event) merge(o Event) {
	switch {
	case o.FirstPreemption == 0 || e.FirstPreemption > 0 && o.FirstPreemption >= e.FirstPreemption && o.LastPreemption <= e.LastPreemption:
		return
	case e.LastPreemption > 0 && o.FirstPreemption > e.LastPreemption && e.Ran >= 0 && o.Ran >= 0:
		e.Ran += o.Ran
	default:
		e.Ran = max(e.Ran, o.Ran)
	}
	if e.FirstPreemption == 0 || o.FirstPreemption < e.FirstPreemption {
		e.FirstPreemption = o.FirstPreemption
	}
	e.LastPreemption = max(e.LastPreemption, o.LastPreemption)
}

// recordSpans inserts spans and adds the new ones to the class statistics.
func (t *tx) recordSpans(records []Record) error {
	var rows [][]any
	for _, r := range records {
		if r.Task.Team == allTeams {
			return errors.New("a team cannot be called " + allTeams)
		}
		for _, s := range r.Spans {
			if s.Kind != Wait && s.Kind != Run {
				return fmt.Errorf("span kind is %q, want %q or %q", s.Kind, Wait, Run)
			}
			began := toMillis(s.Began)
			rows = append(rows, []any{s.WorkloadUID, string(s.Kind), began, max(began, toMillis(s.Ended)), r.Task.Team, r.Task.PriorityClass})
		}
	}
	stats := classRollups{}
	err := t.insert("spans (part, kind, began, ended, team, class)", rows, "ON CONFLICT DO NOTHING RETURNING kind, began, ended, team, class", stats.addRow)
	if err != nil {
		return err
	}
	return t.addClassRollups(stats)
}

// sanitize returns text without what a database rejects: invalid UTF-8 and NUL.
func sanitize(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// encodeRan returns ran in milliseconds; -1 if it is unknown.
func encodeRan(ran time.Duration) int64 {
	if ran < 0 {
		return -1
	}
	return ran.Milliseconds()
}

// decodeRan is the inverse of encodeRan.
func decodeRan(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}
