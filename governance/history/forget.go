package history

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// few is how many tasks or spans one transaction forgets, so that others get their
// turn.
const few = 2000

// Forget removes what is older than is to be kept, in small transactions: tasks
// by when they ended, or were gone where no end was seen, with all of their steps.
// What still runs or waits is kept, however old it is.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	old := floor(millis(now.Add(-s.options.Retention)), day)
	detail := max(old, floor(millis(now.Add(-s.options.DetailRetention)), hour))
	// First of all nobody looks for what is about to go.
	err := s.write(ctx, "forgetting what is old", func(t *tx) error {
		if err := t.exec("UPDATE state SET detail = "+t.greatest+"(detail, ?)", detail); err != nil {
			return err
		}
		if err := t.exec("UPDATE state SET since = ? WHERE since > 0 AND since < ?", old, old); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM loops WHERE last < ?", old); err != nil {
			return err
		}
		return t.exec("DELETE FROM gaps WHERE ended <= ?", old)
	})
	if err != nil {
		return err
	}
	if err := s.forgetAmounts(ctx, old, detail); err != nil {
		return err
	}
	if err := s.forgetClasses(ctx, old); err != nil {
		return err
	}
	for _, some := range []func(*tx, int64) (bool, error){(*tx).forgetSpans, (*tx).forgetTasks} {
		for more := true; more; {
			err := s.write(ctx, "forgetting tasks", func(t *tx) (err error) {
				more, err = some(t, old)
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
	ids, err := keys[int64](ctx, s, "SELECT id FROM holders ORDER BY id")
	if err != nil {
		return err
	}
	return chunks(ids, func(list string, args []any) error {
		return s.write(ctx, "forgetting amounts", func(t *tx) error {
			in := "holder IN (" + list + ")"
			return errors.Join(
				t.exec("DELETE FROM amounts WHERE "+in+" AND began < ? AND ended <= ?", append(args, detail, detail)...),
				t.exec("DELETE FROM amount_hours WHERE "+in+" AND start < ? AND start + times * 3600000 <= ?", append(args, old, old)...),
				t.exec("DELETE FROM amount_days WHERE "+in+" AND start < ? AND start + times * 86400000 <= ?", append(args, old, old)...))
		})
	})
}

func (s *Store) forgetClasses(ctx context.Context, old int64) error {
	teams, err := keys[string](ctx, s, "SELECT DISTINCT team FROM class_days")
	if err != nil {
		return err
	}
	for _, team := range teams {
		err := s.write(ctx, "forgetting sums", func(t *tx) error {
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

// forgetSpans forgets a few; it tells whether there may be more.
func (t *tx) forgetSpans(old int64) (bool, error) {
	last := old - 1
	err := t.row("SELECT ended FROM spans WHERE ended < ? ORDER BY ended LIMIT 1 OFFSET ?", []any{old, few}, &last)
	none := errors.Is(err, sql.ErrNoRows)
	if err != nil && !none {
		return false, err
	}
	return !none, t.exec("DELETE FROM spans WHERE ended <= ?", last)
}

// forgetTasks forgets a few with their steps; it tells whether there may be more.
func (t *tx) forgetTasks(old int64) (bool, error) {
	var ids []int64
	query := `SELECT id FROM tasks WHERE submitted < ? AND (ended > 0 AND ended < ? OR ended = 0 AND gone > 0 AND gone < ?) ORDER BY submitted LIMIT ?`
	err := t.each(query, []any{old, old, old, most}, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return false, err
	}
	return len(ids) == most, chunks(ids, func(list string, args []any) error {
		return errors.Join(t.exec("DELETE FROM steps WHERE task IN ("+list+")", args...), t.exec("DELETE FROM tasks WHERE id IN ("+list+")", args...))
	})
}

// keys are the only column of an answer.
func keys[K any](ctx context.Context, s *Store, query string) ([]K, error) {
	var found []K
	err := s.read(ctx, "looking for what is old", func(t *tx) error {
		return t.each(query, nil, func(scan func(...any) error) error {
			var key K
			err := scan(&key)
			found = append(found, key)
			return err
		})
	})
	return found, err
}
