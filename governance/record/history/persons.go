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
