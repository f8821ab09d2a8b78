package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Record keeps what is known of tasks, in one transaction. Of a task the last
// that was told counts, but for when it ended and when it was gone, which stay
// until they are told anew. Steps and spans that are there already are left as
// they are and counted once, so the same may be told again, but for spans that turn out
// to be of a preemption loop: sums lose them. A few hundred tasks at
// a time are well within what a call may take.
func (s *Store) RecordTasks(ctx context.Context, records []Record) error {
	return s.write(ctx, fmt.Sprintf("recording %d tasks", len(records)), func(t *tx) error {
		ids, err := t.recordTasks(records)
		if err != nil {
			return err
		}
		if err := t.recordSteps(records, ids); err != nil {
			return err
		}
		if err := t.recordSpans(records); err != nil {
			return err
		}
		if err := t.recordLoops(records); err != nil {
			return err
		}
		return t.leaveOut(records)
	})
}

// recordTasks returns the numbers of tasks by UID.
func (t *tx) recordTasks(records []Record) (map[string]int64, error) {
	var tasks []Task
	places := map[string]int{}
	for _, r := range records {
		if r.Task.UID == "" {
			return nil, fmt.Errorf("the task %s/%s has no UID", r.Task.Namespace, r.Task.Name)
		}
		i, again := places[r.Task.UID]
		if !again {
			places[r.Task.UID] = len(tasks)
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
	}
	var rows [][]any
	for _, k := range tasks {
		pools, err := json.Marshal(k.Pools)
		if err != nil {
			return nil, err
		}
		asked, err := json.Marshal(k.Requests)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []any{k.UID, k.Namespace, k.Kind, k.Name, k.Team, k.PriorityClass, k.Priority, k.Queue, k.State, string(pools), string(asked),
			millis(k.SubmittedAt), millis(k.FinishedAt), millis(k.DeletedAt), k.Preemptions, k.RunTime.Milliseconds()})
	}
	ids := map[string]int64{}
	err := t.insert("tasks (uid, namespace, kind, name, team, class, priority, queue, state, pools, asked, submitted, ended, gone, preemptions, ran_ms)", rows,
		`ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, kind = excluded.kind, name = excluded.name, team = excluded.team,
			class = excluded.class, priority = excluded.priority, queue = excluded.queue, state = excluded.state, pools = excluded.pools,
			asked = excluded.asked, submitted = excluded.submitted,
			ended = CASE WHEN excluded.ended = 0 THEN tasks.ended ELSE excluded.ended END,
			gone = CASE WHEN excluded.gone = 0 THEN tasks.gone ELSE excluded.gone END,
			preemptions = excluded.preemptions, ran_ms = excluded.ran_ms
		RETURNING uid, id`,
		func(scan func(...any) error) error {
			var uid string
			var id int64
			if err := scan(&uid, &id); err != nil {
				return err
			}
			ids[uid] = id
			return nil
		})
	return ids, err
}

func (t *tx) recordSteps(records []Record, ids map[string]int64) error {
	type key struct {
		task       int64
		part, what string
		at         int64
	}
	places := map[key]int{}
	var steps []Event
	var keys []key
	for _, r := range records {
		for _, step := range r.Events {
			k := key{ids[r.Task.UID], step.WorkloadUID, step.Type, millis(step.At)}
			i, again := places[k]
			if again {
				steps[i].join(step)
				continue
			}
			places[k] = len(steps)
			steps, keys = append(steps, step), append(keys, k)
		}
	}
	var rows [][]any
	for i, step := range steps {
		other, err := writeParty(step.Other)
		if err != nil {
			return err
		}
		k := keys[i]
		rows = append(rows, []any{k.task, k.part, k.what, k.at, clean(step.Reason), clean(step.Message), other, writeRan(step.Ran), step.Size, step.FirstPreemption, step.LastPreemption})
	}
	// Of preemptions of one second there is one row, as join has it.
	return t.insert("steps AS t (task, part, what, at, reason, text, other, ran_ms, size, nth_first, nth_last)", rows,
		`ON CONFLICT (task, part, what, at) DO UPDATE SET
			ran_ms = CASE WHEN t.nth_last > 0 AND excluded.nth_first > t.nth_last AND t.ran_ms >= 0 AND excluded.ran_ms >= 0
				THEN t.ran_ms + excluded.ran_ms ELSE `+t.greatest+`(t.ran_ms, excluded.ran_ms) END,
			nth_first = CASE WHEN t.nth_first = 0 THEN excluded.nth_first ELSE `+t.least+`(t.nth_first, excluded.nth_first) END,
			nth_last = `+t.greatest+`(t.nth_last, excluded.nth_last)
		WHERE excluded.nth_first > 0 AND (t.nth_first = 0 OR excluded.nth_first < t.nth_first OR excluded.nth_last > t.nth_last)`, nil)
}

// join takes in another preemption of the same second, or the same step again.
func (s *Event) join(o Event) {
	switch {
	case o.FirstPreemption == 0 || s.FirstPreemption > 0 && o.FirstPreemption >= s.FirstPreemption && o.LastPreemption <= s.LastPreemption:
		return
	case s.LastPreemption > 0 && o.FirstPreemption > s.LastPreemption && s.Ran >= 0 && o.Ran >= 0:
		s.Ran += o.Ran
	default:
		s.Ran = max(s.Ran, o.Ran)
	}
	if s.FirstPreemption == 0 || o.FirstPreemption < s.FirstPreemption {
		s.FirstPreemption = o.FirstPreemption
	}
	s.LastPreemption = max(s.LastPreemption, o.LastPreemption)
}

// recordSpans adds to the sums what was not there before.
func (t *tx) recordSpans(records []Record) error {
	var rows [][]any
	for _, r := range records {
		if r.Task.Team == everybody {
			return errors.New("a team cannot be called " + everybody)
		}
		for _, span := range r.Spans {
			if span.Kind != Wait && span.Kind != Run {
				return fmt.Errorf("a span is a wait or a run, not %q", span.Kind)
			}
			began := millis(span.Began)
			rows = append(rows, []any{span.WorkloadUID, string(span.Kind), began, max(began, millis(span.Ended)), r.Task.Team, r.Task.PriorityClass})
		}
	}
	sums := classSums{}
	err := t.insert("spans (part, kind, began, ended, team, class)", rows, "ON CONFLICT DO NOTHING RETURNING kind, began, ended, team, class",
		sums.scan)
	if err != nil {
		return err
	}
	return sums.write(t)
}

// scan adds a row of kind, began, ended, team and class.
func (c *classSums) scan(scan func(...any) error) error {
	var kind, team, class string
	var began, ended int64
	if err := scan(&kind, &began, &ended, &team, &class); err != nil {
		return err
	}
	c.add(SpanKind(kind), began, ended, team, class)
	return nil
}

// clean is a text of others that every database takes.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// writeParty is a party as text; nobody is none.
func writeParty(p TaskRef) (string, error) {
	if p == (TaskRef{}) {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// writeRan is a time in milliseconds, where it is known.
func writeRan(ran time.Duration) int64 {
	if ran < 0 {
		return -1
	}
	return ran.Milliseconds()
}

func readRan(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}
