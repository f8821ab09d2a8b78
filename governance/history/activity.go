package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Activity is one action of a person or a program on an object. ID identifies it.
type Activity struct {
	ID      string // of the request
	At      time.Time
	Actor   string // user; empty if unknown
	Address string // that the request came from; empty if unknown
	Source  Source
	Action  string // such as "submit"; package audit has all
	// The object. Namespace is empty for objects of the cluster.
	Kind, Namespace, Name, UID string
	Team                       string   // of the namespace, or the team that the object is about; empty for none
	Changes                    []string // values that changed, one line each
	Reason                     string   // as the person gave it
	Outcome                    Outcome
	Error                      string // why it failed; empty if it did not
	// Audited is set for what an audit log said about an object that may be no task. It is
	// recorded once history has a task of that UID, with the kind, name and team of the task.
	Audited bool `json:",omitempty"`
}

// Source is where a request came from.
type Source string

// The sources.
const (
	SourceConsole    Source = "console"
	SourceController Source = "controller" // a controller of Kuota, without a person
	SourceOutside    Source = "outside"    // kubectl, GitOps or another program
)

// Outcome is what became of a request.
type Outcome string

// The outcomes.
const (
	Succeeded      Outcome = "succeeded"
	Refused        Outcome = "refused"
	OutcomeUnknown Outcome = "unknown" // the API server did not answer
)

// ActivityQuery selects activity. Its zero value selects all.
type ActivityQuery struct {
	Teams        []string // nil for all; "" is the team of objects that belong to none
	Actor        string   // part of a name, in any case
	Action, Kind string
	UID          string
	NameContains string // of the object, in any case
	From, To     time.Time
	Limit        int // 0 is 1,000
	// Before selects what is older than this entry: its At and ID.
	Before *Activity
}

const activityColumns = "id, at, actor, address, source, action, kind, namespace, name, uid, team, changes, reason, outcome, error"

// RecordActivity records entries. Those that are recorded already do not change. Each
// replica records what it did, so that no term is necessary.
func (s *Store) RecordActivity(ctx context.Context, entries []Activity) error {
	return s.writeAny(ctx, "record activity", func(t *tx) error { return t.recordActivity(entries) })
}

func (t *tx) recordActivity(entries []Activity) error {
	var audited [][]any
	var uids []string
	rows := make([][]any, 0, len(entries))
	for _, e := range richest(entries) { // an insert changes a row once
		changes := ""
		if len(e.Changes) > 0 {
			text, err := json.Marshal(e.Changes)
			if err != nil {
				return err
			}
			changes = sanitize(string(text))
		}
		if e.Audited {
			audited = append(audited, []any{sanitize(e.ID), sanitize(e.UID), toMillis(e.At), sanitize(e.Actor), sanitize(e.Address), e.Action, changes})
			uids = append(uids, sanitize(e.UID))
			continue
		}
		row := []any{e.ID, toMillis(e.At)}
		for _, text := range []string{e.Actor, e.Address, string(e.Source), e.Action, e.Kind, e.Namespace, e.Name, e.UID, e.Team, changes, e.Reason, string(e.Outcome), e.Error} {
			row = append(row, sanitize(text))
		}
		rows = append(rows, row)
	}
	if err := t.insert("activity ("+activityColumns+")", rows, keepsRicher, nil); err != nil {
		return err
	}
	if err := t.insert("audited (id, uid, at, actor, address, action, changes)", audited, "ON CONFLICT DO NOTHING", nil); err != nil {
		return err
	}
	return t.moveAudited(uids)
}

// moveAudited records what an audit log said about objects, of those that are tasks.
func (t *tx) moveAudited(uids []string) error {
	slices.Sort(uids)
	return keyBatches(slices.Compact(uids), func(list string, args []any) error {
		ofTasks := " FROM audited a JOIN tasks k ON k.uid = a.uid WHERE a.uid IN (" + list + ")"
		return errors.Join(
			t.exec(`INSERT INTO activity (`+activityColumns+`)
				SELECT a.id, a.at, a.actor, a.address, 'outside', a.action, k.kind, k.namespace, k.name, k.uid, k.team, a.changes, '', 'succeeded', ''`+ofTasks+` `+keepsRicher, args...),
			t.exec("DELETE FROM audited WHERE id IN (SELECT a.id"+ofTasks+")", args...))
	})
}

// richest returns one entry for each id, as keepsRicher chooses.
func richest(entries []Activity) (chosen []Activity) {
	at := make(map[string]int, len(entries))
	for _, e := range entries {
		i, again := at[e.ID]
		switch {
		case !again:
			at[e.ID] = len(chosen)
			chosen = append(chosen, e)
		case chosen[i].Source == SourceOutside && (e.Source != SourceOutside || chosen[i].Actor == "" && e.Actor != ""):
			chosen[i] = e
		}
	}
	return chosen
}

// keepsRicher keeps what the console recorded of a change rather than what was seen of it
// from outside, and a person rather than none.
const keepsRicher = `ON CONFLICT (id) DO UPDATE SET at = excluded.at, actor = excluded.actor, address = excluded.address, source = excluded.source,
	action = excluded.action, changes = excluded.changes, reason = excluded.reason, outcome = excluded.outcome, error = excluded.error
	WHERE activity.source = 'outside' AND (excluded.source <> 'outside' OR activity.actor = '' AND excluded.actor <> '')`

// SubmissionID and DeletionID return the ids of entries about a task, which the console and
// the recorder both write.
func SubmissionID(uid string) string { return "submit-" + uid }

// ChangeID returns the id of the entry about a spec, which the console and the keeper of
// versions both write.
func ChangeID(uid string, generation int64) string {
	return fmt.Sprintf("spec-%s-%d", uid, generation)
}

// DeletionID is described at SubmissionID.
func DeletionID(uid string) string { return "delete-" + uid }

// recordOutside records tasks that are new, with who submitted them, and those that are gone
// now. The console's own entries of the same replace these.
func (t *tx) recordOutside(records []Record) error {
	known, err := t.state()
	if err != nil {
		return err
	}
	uids := make([]string, 0, len(records))
	for _, r := range records {
		uids = append(uids, r.Task.UID)
	}
	slices.Sort(uids)
	before := map[string]Task{}
	err = keyBatches(slices.Compact(uids), func(list string, args []any) error {
		return t.query("SELECT uid, gone, submitter FROM tasks WHERE uid IN ("+list+")", args, func(scan scanFunc) error {
			var k Task
			var gone int64
			err := scan(&k.UID, &gone, &k.SubmittedBy)
			k.DeletedAt = fromMillis(gone)
			before[k.UID] = k
			return err
		})
	})
	if err != nil {
		return err
	}
	var entries []Activity
	for _, r := range records {
		k := r.Task
		was, exists := before[k.UID]
		entry := Activity{Actor: k.SubmittedBy, Source: SourceOutside, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, UID: k.UID, Team: k.Team, Outcome: Succeeded}
		// What was submitted before history began is no news.
		if toMillis(k.SubmittedAt) >= known.since && known.since > 0 && (!exists || was.SubmittedBy == "" && k.SubmittedBy != "") {
			entry.ID, entry.At, entry.Action = SubmissionID(k.UID), k.SubmittedAt, "submit"
			entries = append(entries, entry)
		}
		if !k.DeletedAt.IsZero() && was.DeletedAt.IsZero() {
			entry.ID, entry.At, entry.Action, entry.Actor = DeletionID(k.UID), k.DeletedAt, "delete", ""
			entries = append(entries, entry)
		}
		before[k.UID] = k
	}
	return t.recordActivity(entries)
}

// Activity returns the entries that q selects, the latest first.
func (s *Store) Activity(ctx context.Context, q ActivityQuery) (found []Activity, err error) {
	if q.Teams != nil && len(q.Teams) == 0 {
		return nil, nil
	}
	where, args := []string{"at >= ?"}, []any{toMillis(q.From)}
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	if !q.To.IsZero() {
		add("at < ?", toMillis(q.To))
	}
	for _, field := range []struct{ condition, value string }{
		{"action = ?", q.Action}, {"kind = ?", q.Kind}, {"uid = ?", q.UID},
	} {
		if field.value != "" {
			add(field.condition, field.value)
		}
	}
	for _, part := range []struct{ column, text string }{{"name", q.NameContains}, {"actor", q.Actor}} {
		if part.text != "" {
			add("lower("+part.column+`) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(part.text))+"%")
		}
	}
	if b := q.Before; b != nil {
		add("(at < ? OR at = ? AND id < ?)", toMillis(b.At), toMillis(b.At), b.ID)
	}
	if q.Teams != nil {
		add("team IN ("+placeholders(len(q.Teams))+")", anyOf(q.Teams)...)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	query := "SELECT " + activityColumns + " FROM activity WHERE " + strings.Join(where, " AND ") + " ORDER BY at DESC, id DESC LIMIT ?"
	err = s.read(ctx, "list activity", func(t *tx) error {
		found = nil
		return t.query(query, append(slices.Clone(args), limit), func(scan scanFunc) error {
			e, err := scanActivity(scan)
			found = append(found, e)
			return err
		})
	})
	return found, err
}

func scanActivity(scan scanFunc) (e Activity, err error) {
	var at int64
	var changes string
	err = scan(&e.ID, &at, &e.Actor, &e.Address, &e.Source, &e.Action, &e.Kind, &e.Namespace, &e.Name, &e.UID, &e.Team, &changes, &e.Reason, &e.Outcome, &e.Error)
	e.At = fromMillis(at)
	if err == nil && changes != "" {
		err = json.Unmarshal([]byte(changes), &e.Changes)
	}
	return e, err
}
