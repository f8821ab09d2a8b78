package activity

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"
)

// away is a database that can be away.
type away struct {
	Store
	mu sync.Mutex
	is bool
}

func (a *away) set(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.is = is
}

func (a *away) RecordActivity(ctx context.Context, entries []history.Activity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.is {
		return fmt.Errorf("the database does not answer: %w", sql.ErrConnDone)
	}
	return a.Store.RecordActivity(ctx, entries)
}

// Entries survive a database that is away and processes that are killed, and each is
// recorded once.
func TestLog(t *testing.T) {
	folder := t.TempDir()
	store, err := history.Open(t.Context(), filepath.Join(folder, "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	database := &away{Store: store, is: true}
	log := slog.New(slog.DiscardHandler)
	added := 0
	add := func(l *Log, n int) {
		for range n {
			l.Add(history.Activity{ID: fmt.Sprintf("r%d", added), At: time.Unix(int64(added+1), 0), Actor: "ada"})
			added++
		}
	}
	path := filepath.Join(folder, "history.db-activity.jsonl")
	l, err := Open(path, database, log)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(path, database, log)
	if err != nil || other.file != nil {
		t.Errorf("two processes use one file: %v", err)
	}
	add(other, 3)
	if err := other.flush(t.Context()); err == nil {
		t.Error("the database is away, and flush succeeds")
	}
	add(l, 300)
	if err := l.flush(t.Context()); err == nil {
		t.Error("the database is away, and flush succeeds")
	}
	// The process is killed within a write.
	if _, err := l.file.WriteString(`{"ID":"torn`); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_ = other.flush(t.Context()) // takes the file over
	if other.file == nil || len(other.pending) != added {
		t.Errorf("the other process has %d entries, want %d", len(other.pending), added)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, database, log); err != nil {
		t.Fatal(err)
	}
	if len(l.pending) != added {
		t.Errorf("the file has %d entries, want %d", len(l.pending), added)
	}
	add(l, 10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	database.set(false)
	recorded := func() int {
		found, err := store.Activity(t.Context(), history.ActivityQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for deadline := time.Now().Add(time.Minute); recorded() < added && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	add(l, 5)
	stop()
	<-done
	if got := recorded(); got != added {
		t.Errorf("%d entries are recorded, want %d", got, added)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("the file has %d bytes after all is recorded: %v", len(text), err)
	}
	var none *Log
	none.Add(history.Activity{ID: "x"})
}
