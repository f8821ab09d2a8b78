package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

const taskColumns = "uid, namespace, kind, name, team, class, priority, queue, state, pools, asked, submitted, ended, gone, preemptions, ran_ms, submitter"

// row returns the fields of taskColumns.
func (k *Task) row() []any {
	return []any{&k.UID, &k.Namespace, &k.Kind, &k.Name, &k.Team, &k.PriorityClass, &k.Priority, &k.Queue, &k.State, jsonColumn(&k.Pools, "null"), jsonColumn(&k.Requests, "null"),
		timeColumn(&k.SubmittedAt), timeColumn(&k.FinishedAt), timeColumn(&k.DeletedAt), &k.Preemptions, durationColumn(&k.RunTime), textColumn(&k.SubmittedBy)}
}

const eventColumns = "part, what, at, reason, text, other, ran_ms, size, nth_first, nth_last"

// row returns the fields of eventColumns.
func (e *Event) row() []any {
	return []any{&e.WorkloadUID, &e.Type, timeColumn(&e.At), textColumn(&e.Reason), textColumn(&e.Message), jsonColumn(&e.Preemptor, ""), durationColumn(&e.Ran), &e.Size, &e.FirstPreemption, &e.LastPreemption}
}

// limitOf returns the limit of a query, which is 0 for the default.
func limitOf(limit int) int { return cmp.Or(max(0, limit), 1000) }

// Tasks returns the task records that q selects, the latest submitted first.
func (s *Store) Tasks(ctx context.Context, q Query) ([]Task, error) {
	limit := limitOf(q.Limit)
	var where conditions
	where.equal("namespace", q.Namespace)
	where.equal("lower(kind)", strings.ToLower(q.Kind))
	where.equal("name", q.Name)
	where.equal("uid", q.UID)
	if !q.To.IsZero() {
		where.add("submitted < ?", toMillis(q.To))
	}
	where.contains("name", q.NameContains)
	if q.Finished {
		where.add("(ended <> 0 OR gone <> 0)")
	}
	if len(q.PriorityClasses) > 0 {
		where.in("class", q.PriorityClasses)
	}
	var found []Task
	err := s.read(ctx, "list tasks", func(t *tx) (err error) {
		if q.Teams == nil {
			where.add("submitted >= ?", toMillis(q.From))
			found, err = t.tasks(where, limit)
			return err
		}
		// One query per team, because the index orders the tasks of each team. Tasks
		// older than the limit-th newest so far are not read.
		from := toMillis(q.From)
		for _, team := range slices.Compact(slices.Sorted(slices.Values(q.Teams))) {
			of := conditions{slices.Clone(where.terms), slices.Clone(where.args)}
			of.add("team = ? AND submitted >= ?", team, from)
			more, err := t.tasks(of, limit)
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
func (s *Store) LiveTasks(ctx context.Context) ([]Task, error) {
	return readList(ctx, s, "list live tasks", (*Task).row, "SELECT "+taskColumns+" FROM tasks WHERE gone = 0 ORDER BY submitted DESC, id DESC")
}

func (t *tx) tasks(where conditions, limit int) ([]Task, error) {
	return list(t, (*Task).row, "SELECT "+taskColumns+" FROM tasks WHERE "+where.String()+" ORDER BY submitted DESC, id DESC LIMIT ?", append(where.args, limit)...)
}

// Timeline returns a task and its events, the oldest first; ok is false if the task
// is not recorded.
func (s *Store) Timeline(ctx context.Context, uid string) (task Task, events []Event, ok bool, err error) {
	var id int64
	err = s.read(ctx, "read a task", func(t *tx) (err error) {
		err = t.queryRow("SELECT "+taskColumns+", id FROM tasks WHERE uid = ?", []any{uid}, append(task.row(), &id)...)
		if err == nil {
			events, err = list(t, (*Event).row, "SELECT "+eventColumns+" FROM steps WHERE task = ? ORDER BY at, id", id)
		}
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Task{}, nil, false, nil
	case err != nil:
		return Task{}, nil, false, err
	}
	return task, events, true, nil
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

const (
	// ManifestRetention is how long manifests are kept, if history is not deleted earlier.
	ManifestRetention = 90 * 24 * time.Hour

	maxManifest = 256 << 10 // compressed, in bytes
)

// KeepManifest records the manifest of a task. One that is recorded already does not
// change, and one that compresses to more than 256 KiB is not recorded. Each replica
// records what it submits, so that no term is necessary.
func (s *Store) KeepManifest(ctx context.Context, uid string, at time.Time, text string) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if packed.Len() > maxManifest {
		return nil
	}
	return s.writeAny(ctx, "keep a manifest", func(t *tx) error {
		return t.exec("INSERT INTO manifests (uid, kept, text) VALUES (?, ?, ?) ON CONFLICT (uid) DO NOTHING", uid, toMillis(at), packed.Bytes())
	})
}

// Manifest returns the manifest of a task; ok is false if none is kept.
func (s *Store) Manifest(ctx context.Context, uid string) (text string, ok bool, err error) {
	var packed []byte
	err = s.read(ctx, "read a manifest", func(t *tx) error {
		return t.queryRow("SELECT text FROM manifests WHERE uid = ?", []any{uid}, &packed)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", false, err
	}
	unpacked, err := io.ReadAll(z)
	return string(unpacked), err == nil, err
}

// WithManifest returns those of these tasks, by UID, whose manifest is kept.
func (s *Store) WithManifest(ctx context.Context, uids []string) (kept map[string]bool, err error) {
	kept = map[string]bool{}
	err = keyBatches(uids, func(list string, args []any) error {
		return s.read(ctx, "list manifests", func(t *tx) error {
			found, err := values[string](t, "SELECT uid FROM manifests WHERE uid IN ("+list+")", args...)
			for _, uid := range found {
				kept[uid] = true
			}
			return err
		})
	})
	return kept, err
}
