package history

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// forgetBatch is how many spans one transaction deletes, so that other writers get
// their turn.
const forgetBatch = 2000

// Forget deletes what is older than the retention, in small transactions. Tasks
// are deleted with their events, by when they finished, or were deleted if they
// did not finish. Tasks that still run or wait are kept.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	old := floor(toMillis(now.Add(-s.options.Retention)), day)
	detail := max(old, floor(toMillis(now.Add(-s.options.DetailRetention)), hour))
	// First, so that readers do not use intervals that are about to be deleted.
	err := s.write(ctx, "delete old gaps, loops, estimates, activity, manifests, alerts and scale events", func(t *tx) error {
		if err := t.exec("UPDATE state SET detail = "+t.greatest+"(detail, ?)", detail); err != nil {
			return err
		}
		if err := t.exec("UPDATE state SET since = ? WHERE since > 0 AND since < ?", old, old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM loops WHERE last < ?", old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM estimates WHERE made < ?", old); err != nil {
			return err
		}
		// Those of recorded tasks are deleted with the task.
		if err := t.exec("DELETE FROM scale_events WHERE at < ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.uid = scale_events.task)", old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM activity WHERE at < ?", old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM task_usage_days WHERE day < ?", old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM task_sizes WHERE ended < ?", old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM audited WHERE at < ?", toMillis(now)-day); err != nil { // no task
			return err
		}
		if err := t.exec("DELETE FROM manifests WHERE kept < ?", max(old, floor(toMillis(now.Add(-ManifestRetention)), day))); err != nil {
			return err
		}
		aside := old
		if keep := s.options.PersonRetention; keep > 0 { // a record has the name of its person
			aside = max(old, toMillis(now.Add(-keep)))
		}
		if err := t.exec("DELETE FROM set_aside WHERE at < ?", aside); err != nil {
			return err
		}
		if err := t.forgetAlerts(old); err != nil {
			return err
		}
		return t.exec("DELETE FROM gaps WHERE ended <= ?", old)
	})
	if err != nil {
		return err
	}
	if err := s.sumUsage(ctx); err != nil {
		return err
	}
	if keep := s.options.PersonRetention; keep > 0 {
		if err := s.forgetPersons(ctx, now.Add(-keep)); err != nil {
			return err
		}
	}
	if err := s.forgetAmounts(ctx, old, detail); err != nil {
		return err
	}
	if err := s.forgetClasses(ctx, old); err != nil {
		return err
	}
	for _, forget := range []func(*tx, int64) (bool, error){(*tx).forgetSpans, (*tx).forgetUsage, (*tx).forgetTasks} {
		for more := true; more; {
			err := s.write(ctx, "delete old tasks", func(t *tx) (err error) {
				more, err = forget(t, old)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) forgetAmounts(ctx context.Context, old, detail int64) error {
	ids, err := queryColumn[int64](ctx, s, "SELECT id FROM holders ORDER BY id")
	if err != nil {
		return err
	}
	return keyBatches(ids, func(list string, args []any) error {
		return s.write(ctx, "delete old amounts", func(t *tx) error {
			in := "holder IN (" + list + ")"
			return errors.Join(
				t.exec("DELETE FROM amounts WHERE "+in+" AND began < ? AND ended <= ?", append(args, detail, detail)...),
				t.exec("DELETE FROM amount_hours WHERE "+in+" AND start < ? AND start + times * 3600000 <= ?", append(args, old, old)...),
				t.exec("DELETE FROM amount_days WHERE "+in+" AND start < ? AND start + times * 86400000 <= ?", append(args, old, old)...))
		})
	})
}

func (s *Store) forgetClasses(ctx context.Context, old int64) error {
	teams, err := queryColumn[string](ctx, s, "SELECT DISTINCT team FROM class_days")
	if err != nil {
		return err
	}
	for _, team := range teams {
		err := s.write(ctx, "delete old class statistics", func(t *tx) error {
			return errors.Join(
				t.exec("DELETE FROM class_hours WHERE team = ? AND start < ?", team, old),
				t.exec("DELETE FROM class_days WHERE team = ? AND start < ?", team, old))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetSpans deletes one batch and reports whether there may be more.
func (t *tx) forgetSpans(old int64) (bool, error) {
	last := old - 1
	err := t.queryRow("SELECT ended FROM spans WHERE ended < ? ORDER BY ended LIMIT 1 OFFSET ?", []any{old, forgetBatch}, &last)
	none := errors.Is(err, sql.ErrNoRows)
	if err != nil && !none {
		return false, err
	}
	return !none, t.exec("DELETE FROM spans WHERE ended <= ?", last)
}

// forgetTasks deletes one batch with its events and reports whether there may be
// more.
func (t *tx) forgetTasks(old int64) (bool, error) {
	var ids []int64
	query := `SELECT id FROM tasks WHERE submitted < ? AND (ended > 0 AND ended < ? OR ended = 0 AND gone > 0 AND gone < ?) ORDER BY submitted LIMIT ?`
	err := t.query(query, []any{old, old, old, maxBatch}, func(scan scanFunc) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return false, err
	}
	return len(ids) == maxBatch, keyBatches(ids, func(list string, args []any) error {
		return errors.Join(
			t.exec("DELETE FROM steps WHERE task IN ("+list+")", args...),
			t.exec("DELETE FROM scale_events WHERE task IN (SELECT uid FROM tasks WHERE id IN ("+list+"))", args...),
			t.exec("DELETE FROM tasks WHERE id IN ("+list+")", args...))
	})
}

// queryColumn returns the only column of a query.
func queryColumn[V any](ctx context.Context, s *Store, query string) ([]V, error) {
	var found []V
	err := s.read(ctx, "list what may be old", func(t *tx) error {
		return t.query(query, nil, func(scan scanFunc) error {
			var value V
			err := scan(&value)
			found = append(found, value)
			return err
		})
	})
	return found, err
}
