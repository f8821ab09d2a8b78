package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// row returns the fields of activityColumns.
func (e *Activity) row() []any {
	return []any{textColumn(&e.ID), timeColumn(&e.At), textColumn(&e.Actor), textColumn(&e.Address), textColumn(&e.Source), textColumn(&e.Action), textColumn(&e.Kind), textColumn(&e.Namespace),
		textColumn(&e.Name), textColumn(&e.UID), textColumn(&e.Team), jsonColumn(&e.Changes, ""), textColumn(&e.Reason), textColumn(&e.Outcome), textColumn(&e.Error)}
}

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
		if e.Audited {
			audited = append(audited, []any{textColumn(&e.ID), textColumn(&e.UID), timeColumn(&e.At), textColumn(&e.Actor), textColumn(&e.Address), e.Action, jsonColumn(&e.Changes, "")})
			uids = append(uids, sanitize(e.UID))
			continue
		}
		rows = append(rows, e.row())
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
			err := scan(&k.UID, timeColumn(&k.DeletedAt), &k.SubmittedBy)
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
func (s *Store) Activity(ctx context.Context, q ActivityQuery) ([]Activity, error) {
	if q.Teams != nil && len(q.Teams) == 0 {
		return nil, nil
	}
	var where conditions
	where.add("at >= ?", toMillis(q.From))
	if !q.To.IsZero() {
		where.add("at < ?", toMillis(q.To))
	}
	where.equal("action", q.Action)
	where.equal("kind", q.Kind)
	where.equal("uid", q.UID)
	where.contains("name", q.NameContains)
	where.contains("actor", q.Actor)
	if b := q.Before; b != nil {
		where.add("(at < ? OR at = ? AND id < ?)", toMillis(b.At), toMillis(b.At), b.ID)
	}
	if q.Teams != nil {
		where.in("team", q.Teams)
	}
	query := "SELECT " + activityColumns + " FROM activity WHERE " + where.String() + " ORDER BY at DESC, id DESC LIMIT ?"
	return readList(ctx, s, "list activity", (*Activity).row, query, append(where.args, limitOf(q.Limit))...)
}
