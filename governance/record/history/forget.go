package history

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"strings"
	"time"
)

// forgetBatch is how many spans one transaction deletes, so that other writers get
// their turn.
const forgetBatch = 2000

// Forget deletes what is older than the retention, in small transactions. Tasks
// are deleted with their events, by when they finished, or were deleted if they
// did not finish. Tasks that still run or wait are kept. What the database refuses to
// delete stays, and the rest is deleted; the error joins all refusals.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	old := floor(toMillis(now.Add(-s.options.Retention)), day)
	detail := max(old, floor(toMillis(now.Add(-s.options.DetailRetention)), hour))
	aside := old
	if keep := s.options.PersonRetention; keep > 0 { // a record has the name of its person
		aside = max(old, toMillis(now.Add(-keep)))
	}
	write := func(run func(t *tx) error) func() error {
		return func() error { return s.write(ctx, "delete old records", run) }
	}
	remove := func(query string, args ...any) func() error {
		return write(func(t *tx) error { return t.exec(query, args...) })
	}
	// First, so that readers do not use intervals that are about to be deleted.
	err := write(func(t *tx) error {
		return errors.Join(
			t.exec("UPDATE state SET detail = "+t.greatest+"(detail, ?)", detail),
			t.exec("UPDATE state SET since = ? WHERE since > 0 AND since < ?", old, old))
	})()
	if err != nil {
		return err
	}
	var failed []error
	var unsummed error
	for _, step := range []func() error{
		remove("DELETE FROM loops WHERE last < ?", old),
		remove("DELETE FROM estimates WHERE made < ?", old),
		// Those of recorded tasks are deleted with the task.
		remove("DELETE FROM scale_events WHERE at < ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.uid = scale_events.task)", old),
		remove("DELETE FROM training_starts WHERE at < ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.uid = training_starts.task)", old),
		remove("DELETE FROM activity WHERE at < ?", old),
		remove("DELETE FROM task_usage_days WHERE day < ?", old),
		remove("DELETE FROM task_sizes WHERE ended < ?", old),
		remove("DELETE FROM audited WHERE at < ?", toMillis(now)-day), // no task
		remove("DELETE FROM manifests WHERE kept < ?", max(old, floor(toMillis(now.Add(-ManifestRetention)), day))),
		remove("DELETE FROM set_aside WHERE at < ?", aside),
		write(func(t *tx) error { return t.forgetAlerts(old) }),
		remove("DELETE FROM gaps WHERE ended <= ?", old),
		func() error { unsummed = s.sumUsage(ctx); return unsummed },
		func() error {
			if s.options.PersonRetention <= 0 {
				return nil
			}
			return s.forgetPersons(ctx, now.Add(-s.options.PersonRetention))
		},
		func() error { return s.forgetAmounts(ctx, old, detail) },
		func() error { return s.forgetClasses(ctx, old) },
		func() error { return s.forgetBatches(ctx, (*tx).forgetSpans, old) },
		func() error {
			if unsummed != nil { // runs whose days are not summed up are still needed
				return nil
			}
			return s.forgetBatches(ctx, (*tx).forgetUsage, old)
		},
		func() error { return s.forgetBatches(ctx, (*tx).forgetTasks, old) },
	} {
		if err := step(); err != nil {
			if failed = append(failed, err); Retryable(err) {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// forgetBatches deletes one batch after the other until there are no more.
func (s *Store) forgetBatches(ctx context.Context, forget func(*tx, int64) (bool, error), old int64) error {
	for more := true; more; {
		err := s.write(ctx, "delete old tasks", func(t *tx) (err error) {
			more, err = forget(t, old)
			return err
		})
		if err != nil {
			return err
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
	ids, err := values[int64](t, `SELECT id FROM tasks WHERE submitted < ? AND (ended > 0 AND ended < ? OR ended = 0 AND gone > 0 AND gone < ?) ORDER BY submitted LIMIT ?`, old, old, old, maxBatch)
	if err != nil {
		return false, err
	}
	return len(ids) == maxBatch, keyBatches(ids, func(list string, args []any) error {
		return errors.Join(
			t.exec("DELETE FROM steps WHERE task IN ("+list+")", args...),
			t.exec("DELETE FROM scale_events WHERE task IN (SELECT uid FROM tasks WHERE id IN ("+list+"))", args...),
			t.exec("DELETE FROM training_starts WHERE task IN (SELECT uid FROM tasks WHERE id IN ("+list+"))", args...),
			t.exec("DELETE FROM tasks WHERE id IN ("+list+")", args...))
	})
}

// queryColumn is values in a transaction of its own.
func queryColumn[V any](ctx context.Context, s *Store, query string) (found []V, err error) {
	err = s.read(ctx, "list what may be old", func(t *tx) (err error) {
		found, err = values[V](t, query)
		return err
	})
	return found, err
}

// pseudonymPrefix begins the pseudonyms of persons. No user of Kubernetes has such a name: it
// has an issuer, an @ or a chosen prefix.
const pseudonymPrefix = "person-"

// persons are the columns with names of persons, and which rows are old.
var persons = []struct{ table, column, old string }{
	{"activity", "actor", "at < ?"},
	{"silences", "actor", "created < ?"},
	{"tasks", "submitter", "submitted < ? AND (ended > 0 OR gone > 0)"},
	{"task_usage", "person", "began < ? AND ended > 0"},
	{"task_usage_days", "name", "day < ? AND dimension = 'person'"},
}

// forgetPersons replaces the names of persons before a time by pseudonyms, the same for one
// person everywhere, and deletes their addresses. Programs keep their names.
func (s *Store) forgetPersons(ctx context.Context, before time.Time) error {
	old := floor(toMillis(before), day)
	return s.write(ctx, "replace the names of persons", func(t *tx) error {
		key, err := t.pseudonymKey()
		if err != nil {
			return err
		}
		for _, p := range persons {
			names, err := values[string](t, "SELECT DISTINCT "+p.column+" FROM "+p.table+" WHERE "+p.old, old)
			if err != nil {
				return err
			}
			for _, name := range names {
				if !isPerson(name) {
					continue
				}
				if p.table == "task_usage_days" { // a late run can have added to a day with pseudonyms
					err := errors.Join(
						t.exec(`INSERT INTO task_usage_days AS d (dimension, resource, team, day, pool, name, used, lost)
							SELECT dimension, resource, team, day, pool, ?, used, lost FROM task_usage_days WHERE name = ? AND `+p.old+`
							ON CONFLICT (dimension, resource, team, day, pool, name) DO UPDATE SET used = d.used + excluded.used, lost = d.lost + excluded.lost`, pseudonym(key, name), name, old),
						t.exec("DELETE FROM task_usage_days WHERE name = ? AND "+p.old, name, old))
					if err != nil {
						return err
					}
					continue
				}
				if err := t.exec("UPDATE "+p.table+" SET "+p.column+" = ? WHERE "+p.column+" = ? AND "+p.old, pseudonym(key, name), name, old); err != nil {
					return err
				}
			}
		}
		return t.exec("UPDATE activity SET address = '' WHERE address <> '' AND at < ?", old)
	})
}

// isPerson reports whether a user name can be that of a person who has no pseudonym yet.
func isPerson(name string) bool {
	return name != "" && !strings.HasPrefix(name, "system:") && !strings.HasPrefix(name, pseudonymPrefix)
}

// pseudonym returns what a person is called.
func pseudonym(key, name string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(name))
	return pseudonymPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil))[:12])
}

// pseudonymKey returns the key of this database, and creates it the first time.
func (t *tx) pseudonymKey() (key string, err error) {
	err = t.queryRow("SELECT secret FROM pseudonym_key", nil, &key)
	if errors.Is(err, sql.ErrNoRows) {
		key = rand.Text()
		err = t.exec("INSERT INTO pseudonym_key (secret) VALUES (?)", key)
	}
	return key, err
}
