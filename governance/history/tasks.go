package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// taskColumns are what readTask reads.
const taskColumns = "id, uid, namespace, kind, name, team, class, priority, queue, state, pools, asked, submitted, ended, gone, preemptions, ran_ms"

// usualLimit is how many tasks Tasks returns where the query says nothing.
const usualLimit = 1000

// escapeLike takes what is special out of a text that LIKE looks for.
var escapeLike = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// Tasks are the task records that a query asks for, the newest first by when they
// were submitted; 1000 of them where it has no limit.
func (s *Store) Tasks(ctx context.Context, q Query) ([]Task, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = usualLimit
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
		add("submitted < ?", millis(q.To))
	}
	if q.NameContains != "" {
		add(`lower(name) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(q.NameContains))+"%")
	}
	if q.Finished {
		where = append(where, "(ended <> 0 OR gone <> 0)")
	}
	if len(q.PriorityClasses) > 0 {
		where = append(where, "class IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(q.PriorityClasses)), ", ")+")")
		for _, class := range q.PriorityClasses {
			args = append(args, class)
		}
	}
	var found []Task
	err := s.read(ctx, "looking up tasks", func(t *tx) error {
		if q.Teams == nil {
			var err error
			found, err = t.tasks(append(where, "submitted >= ?"), append(args, millis(q.From)), limit)
			return err
		}
		// Team by team, since each has its own in order; of each only what is newer
		// than the oldest that would be shown.
		from := millis(q.From)
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
				from = max(from, millis(found[limit-1].SubmittedAt))
			}
		}
		return nil
	})
	return found, err
}

func (t *tx) tasks(where []string, args []any, limit int) ([]Task, error) {
	var found []Task
	query := "SELECT " + taskColumns + " FROM tasks WHERE " + strings.Join(where, " AND ") + " ORDER BY submitted DESC, id DESC LIMIT ?"
	err := t.each(query, append(args, limit), func(scan func(...any) error) error {
		_, task, err := readTask(scan)
		found = append(found, task)
		return err
	})
	return found, err
}

// Life is one task with its steps in the order of time; false where there is no
// record of it.
func (s *Store) Timeline(ctx context.Context, uid string) (Task, []Event, bool, error) {
	var id int64
	var task Task
	var steps []Event
	err := s.read(ctx, "looking up a task", func(t *tx) error {
		err := t.each("SELECT "+taskColumns+" FROM tasks WHERE uid = ?", []any{uid}, func(scan func(...any) error) error {
			var err error
			id, task, err = readTask(scan)
			return err
		})
		if err != nil || id == 0 {
			return err
		}
		query := "SELECT part, what, at, reason, text, other, ran_ms, size, nth_first, nth_last FROM steps WHERE task = ? ORDER BY at, id"
		return t.each(query, []any{id}, func(scan func(...any) error) error {
			var step Event
			var at, ran int64
			var other string
			if err := scan(&step.WorkloadUID, &step.Type, &at, &step.Reason, &step.Message, &other, &ran, &step.Size, &step.FirstPreemption, &step.LastPreemption); err != nil {
				return err
			}
			step.At, step.Ran = moment(at), readRan(ran)
			if other != "" {
				if err := json.Unmarshal([]byte(other), &step.Other); err != nil {
					return err
				}
			}
			steps = append(steps, step)
			return nil
		})
	})
	if err != nil {
		return Task{}, nil, false, err
	}
	return task, steps, id != 0, nil
}

func readTask(scan func(...any) error) (int64, Task, error) {
	var k Task
	var id, submitted, ended, gone, ran int64
	var pools, asked string
	err := scan(&id, &k.UID, &k.Namespace, &k.Kind, &k.Name, &k.Team, &k.PriorityClass, &k.Priority, &k.Queue, &k.State, &pools, &asked,
		&submitted, &ended, &gone, &k.Preemptions, &ran)
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(pools), &k.Pools), json.Unmarshal([]byte(asked), &k.Requests))
	}
	k.SubmittedAt, k.FinishedAt, k.DeletedAt, k.RunTime = moment(submitted), moment(ended), moment(gone), time.Duration(ran)*time.Millisecond
	return id, k, err
}

// Since is from when on there is history: the first moment told, or from when on
// it is kept; zero where there is none.
func (s *Store) Since(ctx context.Context) (time.Time, error) {
	state, err := s.state(ctx)
	return moment(state.since), err
}

// state is the one row of the table.
type state struct {
	since, seen int64 // from when and until when amounts are known; 0 for not at all
	detail      int64 // from when on each single interval is kept
}

func (s *Store) state(ctx context.Context) (found state, err error) {
	err = s.read(ctx, "looking up what is known", func(t *tx) error {
		found, err = t.state()
		return err
	})
	return found, err
}

func (t *tx) state() (found state, err error) {
	err = t.row("SELECT since, seen, detail FROM state", nil, &found.since, &found.seen, &found.detail)
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("the table state has no row: these are not Kuota's tables, or they were emptied by hand")
	}
	return found, err
}
