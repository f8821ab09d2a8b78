package recorder

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
)

// One record that the database refuses is set aside, and those before and behind it are
// written at once, for each writer.
func TestRefusedRecords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "history.db")
	store, err := history.Open(ctx, path, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	refuse(t, path, "open_amounts", "NEW.amount = 666")
	refuse(t, path, "gaps", "NEW.why = 'bad'")
	refuse(t, path, "tasks", "NEW.name = 'bad'")
	refuse(t, path, "scale_events", "NEW.name = 'bad'")
	refuse(t, path, "activity", "NEW.name = 'bad'")
	if _, err := store.BeginTerm(ctx); err != nil {
		t.Fatal(err)
	}
	r := &Recorder{Store: store, Log: slog.New(slog.DiscardHandler)}
	b := newBuffer()
	at := time.Now().Truncate(time.Second).Add(-time.Hour)
	used := func(team string) history.SeriesKey {
		return history.SeriesKey{Team: team, Pool: "p5", Resource: "nvidia.com/gpu", Measure: history.Used}
	}
	b.addSample(history.Sample{At: at, Amounts: []history.Amount{{SeriesKey: used("a"), Amount: 1}, {SeriesKey: used("b"), Amount: 666}, {SeriesKey: used("c"), Amount: 3}}})
	b.addGap(history.Gap{From: at.Add(time.Minute), To: at.Add(2 * time.Minute), Reason: "bad"})
	b.addSample(history.Sample{At: at.Add(3 * time.Minute), Amounts: []history.Amount{{SeriesKey: used("d"), Amount: 4}}})
	b.addTasks([]history.Record{record("first"), record("bad"), record("last")}, false)
	b.addScales([]history.ScaleEvent{{Namespace: "ns", Name: "first", TaskUID: "1", Number: 1, At: at}, {Namespace: "ns", Name: "bad", TaskUID: "2", Number: 1, At: at}, {Namespace: "ns", Name: "last", TaskUID: "3", Number: 1, At: at}})
	if err := r.flush(ctx, b); err != nil {
		t.Fatal(err)
	}
	log, err := activity.Open("", store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "bad", "two"} {
		log.Add(history.Activity{ID: name, At: at, Name: name})
	}
	go func() { _ = log.Run(ctx) }()

	for table, want := range map[string][]string{"open_amounts": {"1", "3", "4"}, "tasks": {"first", "last"}, "scale_events": {"first", "last"}, "activity": {"first", "last", "one", "two"}, "gaps": nil, "set_aside": {"activity", "gaps", "samples", "scale events", "tasks"}} {
		column := map[string]string{"open_amounts": "amount", "set_aside": "writer", "gaps": "why"}[table]
		if column == "" {
			column = "name"
		}
		eventually(t, path, "SELECT "+column+" FROM "+table+" ORDER BY "+column, want)
	}
	if n, latest, err := store.CountSetAside(ctx, at); err != nil || n != 5 || latest == nil || latest.Reason == "" || latest.Record == "" {
		t.Errorf("got %d records, the latest %+v, %v", n, latest, err)
	}
}

func record(name string) history.Record {
	return history.Record{Task: history.Task{Namespace: "ns", Kind: "Job", Name: name, UID: name, SubmittedAt: time.Now()}}
}

// refuse makes a table refuse rows, as a rule of a database can.
func refuse(t *testing.T, path, table, condition string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TRIGGER refuse_"+table+" BEFORE INSERT ON "+table+" WHEN "+condition+" BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a query returns rows.
func eventually(t *testing.T, path, query string, want []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(4000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got []string
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
		got = nil
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if len(got) == len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", query, diff)
	}
}
