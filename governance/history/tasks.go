package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// taskColumns are the columns that scanTask reads.
const taskColumns = "id, uid, namespace, kind, name, team, class, priority, queue, state, pools, asked, submitted, ended, gone, preemptions, ran_ms, submitter"

// defaultLimit is the Limit of a Query without one.
const defaultLimit = 1000

// escapeLike escapes the wildcards of LIKE.
var escapeLike = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// Tasks returns the task records that q selects, the latest submitted first.
func (s *Store) Tasks(ctx context.Context, q Query) ([]Task, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var where []string
	var args []any
	add := func(condition string, value any) {
		where = append(where, condition)
		args = append(args, value)
	}
	for _, field := range []struct{ condition, value string }{
		{"namespace = ?", q.Namespace}, {"lower(kind) = ?", strings.ToLower(q.Kind)}, {"name = ?", q.Name}, {"uid = ?", q.UID},
	} {
		if field.value != "" {
			add(field.condition, field.value)
		}
	}
	if !q.To.IsZero() {
		add("submitted < ?", toMillis(q.To))
	}
	if q.NameContains != "" {
		add(`lower(name) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(q.NameContains))+"%")
	}
	if q.Finished {
		where = append(where, "(ended <> 0 OR gone <> 0)")
	}
	if len(q.PriorityClasses) > 0 {
		where = append(where, "class IN ("+placeholders(len(q.PriorityClasses))+")")
		for _, class := range q.PriorityClasses {
			args = append(args, class)
		}
	}
	var found []Task
	err := s.read(ctx, "list tasks", func(t *tx) error {
		if q.Teams == nil {
			var err error
			found, err = t.tasks(append(where, "submitted >= ?"), append(args, toMillis(q.From)), limit)
			return err
		}
		// One query per team, because the index orders the tasks of each team. Tasks
		// older than the limit-th newest so far are not read.
		from := toMillis(q.From)
		for _, team := range slices.Compact(slices.Sorted(slices.Values(q.Teams))) {
			more, err := t.tasks(append(slices.Clone(where), "team = ?", "submitted >= ?"), append(slices.Clone(args), team, from), limit)
			if err != nil {
				return err
			}
			if len(more) == 0 {
				continue
			}
			found = append(found, more...)
			slices.SortStableFunc(found, func(a, b Task) int { return b.SubmittedAt.Compare(a.SubmittedAt) })
			if len(found) >= limit {
				found = found[:limit]
				from = max(from, toMillis(found[limit-1].SubmittedAt))
			}
		}
		return nil
	})
	return found, err
}

// LiveTasks returns the tasks whose deletion is not recorded.
func (s *Store) LiveTasks(ctx context.Context) (live []Task, err error) {
	err = s.read(ctx, "list live tasks", func(t *tx) error {
		live, err = t.tasks([]string{"gone = ?"}, []any{0}, math.MaxInt32)
		return err
	})
	return live, err
}

func (t *tx) tasks(where []string, args []any, limit int) ([]Task, error) {
	var found []Task
	query := "SELECT " + taskColumns + " FROM tasks WHERE " + strings.Join(where, " AND ") + " ORDER BY submitted DESC, id DESC LIMIT ?"
	err := t.query(query, append(args, limit), func(scan scanFunc) error {
		_, task, err := scanTask(scan)
		found = append(found, task)
		return err
	})
	return found, err
}

// Timeline returns a task and its events, the oldest first; ok is false if the task
// is not recorded.
func (s *Store) Timeline(ctx context.Context, uid string) (task Task, events []Event, ok bool, err error) {
	var id int64
	err = s.read(ctx, "read a task", func(t *tx) error {
		err := t.query("SELECT "+taskColumns+" FROM tasks WHERE uid = ?", []any{uid}, func(scan scanFunc) error {
			var err error
			id, task, err = scanTask(scan)
			return err
		})
		if err != nil || id == 0 {
			return err
		}
		query := "SELECT part, what, at, reason, text, other, ran_ms, size, nth_first, nth_last FROM steps WHERE task = ? ORDER BY at, id"
		return t.query(query, []any{id}, func(scan scanFunc) error {
			var e Event
			var at, ran int64
			var other string
			if err := scan(&e.WorkloadUID, &e.Type, &at, &e.Reason, &e.Message, &other, &ran, &e.Size, &e.FirstPreemption, &e.LastPreemption); err != nil {
				return err
			}
			e.At, e.Ran = fromMillis(at), decodeRan(ran)
			if other != "" {
				if err := json.Unmarshal([]byte(other), &e.Preemptor); err != nil {
					return err
				}
			}
			events = append(events, e)
			return nil
		})
	})
	if err != nil {
		return Task{}, nil, false, err
	}
	return task, events, id != 0, nil
}

func scanTask(scan scanFunc) (int64, Task, error) {
	var k Task
	var id, submitted, ended, gone, ran int64
	var pools, asked string
	err := scan(&id, &k.UID, &k.Namespace, &k.Kind, &k.Name, &k.Team, &k.PriorityClass, &k.Priority, &k.Queue, &k.State, &pools, &asked,
		&submitted, &ended, &gone, &k.Preemptions, &ran, &k.SubmittedBy)
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(pools), &k.Pools), json.Unmarshal([]byte(asked), &k.Requests))
	}
	k.SubmittedAt, k.FinishedAt, k.DeletedAt = fromMillis(submitted), fromMillis(ended), fromMillis(gone)
	k.RunTime = time.Duration(ran) * time.Millisecond
	return id, k, err
}

// Since returns when history begins: the first sample, or the start of the
// retention if that is later; zero without samples.
func (s *Store) Since(ctx context.Context) (time.Time, error) {
	state, err := s.state(ctx)
	return fromMillis(state.since), err
}

// SampledUntil returns the time of the last sample; zero without samples.
func (s *Store) SampledUntil(ctx context.Context) (time.Time, error) {
	state, err := s.state(ctx)
	return fromMillis(state.seen), err
}

// state is the only row of the table state, in milliseconds.
type state struct {
	since, seen int64 // first and last sample; 0 for none
	detail      int64 // from here on every single interval is stored
	summed      int64 // until when task_usage_days and task_sizes have everything; -1 while they do not
}

func (s *Store) state(ctx context.Context) (found state, err error) {
	err = s.read(ctx, "read the state", func(t *tx) error {
		found, err = t.state()
		return err
	})
	return found, err
}

func (t *tx) state() (found state, err error) {
	err = t.queryRow("SELECT since, seen, detail, summed FROM state", nil, &found.since, &found.seen, &found.detail, &found.summed)
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("table state has no row: these are not Kuota's tables, or they were emptied by hand")
	}
	return found, err
}
