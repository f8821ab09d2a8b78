package history

import (
	"errors"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history/historytest"
)

// testTerms begins terms in two Stores in turn: only the last one writes.
func testTerms(t *testing.T, url string) {
	ctx := t.Context()
	key := SeriesKey{Pool: "p", Resource: "gpu", Measure: Used}
	at := start
	writes := func(s *Store) map[string]error {
		at = at.Add(time.Second)
		_, scaled := s.RecordScaleEvents(ctx, []ScaleEvent{scaleEvent("e", at.Unix(), at, 0, 1, 1)})
		return map[string]error{
			"samples": s.AppendSamples(ctx, []Sample{{At: at, Amounts: []Amount{{SeriesKey: key, Amount: at.Unix() % 7}}}}),
			"tasks":   s.RecordTasks(ctx, []Record{{Task: Task{UID: "u", Namespace: "n", Name: "t", SubmittedAt: at}}}),
			"gap":     s.RecordGap(ctx, Gap{From: at, To: at, Reason: "none"}),
			"forget":  s.Forget(ctx, at),
			"scaled":  scaled,
		}
	}
	check := func(s *Store, want error) {
		t.Helper()
		for name, err := range writes(s) {
			if !errors.Is(err, want) {
				t.Errorf("%s: got error %v, want %v", name, err, want)
			}
		}
	}
	a, b := open(t, url, Options{}), open(t, url, Options{})
	must[time.Time](t)(a.BeginTerm(ctx))
	check(a, nil)
	last := at
	if until := must[time.Time](t)(b.BeginTerm(ctx)); !until.Equal(last) {
		t.Errorf("BeginTerm: got %s, want the last sample at %s", until, last)
	}
	check(a, ErrNotLeader)
	check(b, nil)
	must[time.Time](t)(a.BeginTerm(ctx))
	check(a, nil)
	check(b, ErrNotLeader)
	check(open(t, url, Options{}), nil) // an old console, or one without election
}

// testPausedWriter begins a term while another Store is paused within a transaction.
func testPausedWriter(t *testing.T, server *historytest.Server) {
	url := server.Database(t)
	a, b := impatient(open(t, url, Options{})), impatient(open(t, url, Options{}))
	paused, err := a.writer.BeginTx(t.Context(), nil)
	ok(t, err)
	defer paused.Rollback() //nolint:errcheck // the server ended it
	_, err = paused.Exec(a.lock)
	ok(t, err)
	began := time.Now()
	must[time.Time](t)(b.BeginTerm(t.Context()))
	if took := time.Since(began); took > callTimeout {
		t.Errorf("BeginTerm took %s, want at most %s", took, callTimeout)
	}
	if err := paused.Commit(); err == nil {
		t.Error("the paused transaction was committed")
	}
}
