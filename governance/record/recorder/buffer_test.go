package recorder

import (
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"
)

func at(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }

// The buffer keeps samples and gaps in order. If there are too many, they become one
// gap, and the next sample must contain all amounts.
func TestBufferOverflowBecomesGap(t *testing.T) {
	b := newBuffer()
	amounts := []history.Amount{{Amount: 1}}
	b.addGap(history.Gap{From: at(0), To: at(1), Reason: "before"})
	b.addSample(history.Sample{At: at(1), Amounts: amounts})
	b.addSample(history.Sample{At: at(2)})
	if _, gap, _, _ := b.next(); gap == nil || gap.Reason != "before" {
		t.Fatalf("next returns gap %+v, want the first", gap)
	} else {
		b.removeEntries(1, gap)
	}
	samples, gap, _, _ := b.next()
	if len(samples) != 2 || gap != nil {
		t.Fatalf("next returns %d samples and gap %+v, want 2 samples", len(samples), gap)
	}
	for i := range maxEntries { // while the first two are being written
		b.addSample(history.Sample{At: at(3 + i), Amounts: amounts})
	}
	b.removeEntries(len(samples), nil)
	if !b.takeOverflow() || b.takeOverflow() {
		t.Error("takeOverflow must report true once")
	}
	samples, gap, _, _ = b.next()
	if len(samples) != 0 || gap == nil || gap.Reason != reasonUnwritten || !gap.From.Equal(at(1)) {
		t.Fatalf("next returns %d samples and gap %+v, want a gap from the first sample", len(samples), gap)
	}
	b.removeEntries(1, gap)
	b.addSample(history.Sample{At: at(9), Amounts: amounts})
	if b.len() == 0 {
		t.Error("the sample after the gap is missing")
	}
}

// A sample of more amounts than one transaction takes, as after a gap among thousands of
// teams, is written in parts, and so is the end of its series.
func TestLargeSample(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "history.db")
	store, err := history.Open(ctx, path, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := &Recorder{Store: store, Log: slog.New(slog.DiscardHandler)}
	b := newBuffer()
	large := history.Sample{At: at(1)}
	for i := range 2*amountsPerCall + 1 {
		large.Amounts = append(large.Amounts, history.Amount{SeriesKey: history.SeriesKey{Team: fmt.Sprint(i), Pool: "p5", Resource: "cpu", Measure: history.Used}, Amount: 1})
	}
	b.addSample(large)
	b.addSample(history.Sample{At: at(2), Amounts: large.Amounts[:1]})
	if samples, _, _, _ := b.next(); len(samples) != 1 {
		t.Errorf("next: got %d samples, want the large one alone", len(samples))
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	count := func(table string, want int) {
		t.Helper()
		if err := r.flush(ctx, b); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != want {
			t.Errorf("%s: got %d rows and error %v, want %d", table, n, err, want)
		}
	}
	count("open_amounts", len(large.Amounts))
	b.addGap(history.Gap{From: at(3), To: at(4), Reason: "test"})
	count("open_amounts", 0)
	count("gaps", 1)
}
