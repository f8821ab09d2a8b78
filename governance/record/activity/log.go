package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"kuota.dev/kuota/governance/record/history"
)

const (
	retryInterval = time.Second
	writeTimeout  = 5 * time.Second
	batch         = 256 // entries in one transaction
	// maxPending bounds the memory of entries while the database does not answer. Of
	// more, the file has all, and they are recorded when the console starts again.
	maxPending = 100_000
)

// Writer names activity among the records that are set aside.
const Writer = "activity"

// Store is the part of history.Store that a Log writes to.
type Store interface {
	history.Asider
	RecordActivity(ctx context.Context, entries []history.Activity) error
}

// Log records activity. A nil Log discards it. It is safe for concurrent use.
type Log struct {
	store Store
	log   *slog.Logger
	path  string // of the file; empty for none
	wake  chan struct{}

	mu      sync.Mutex
	file    *os.File // nil without a path, and while another process has it
	pending []history.Activity
	dropped bool // pending is not all that the file has
}

// Open returns a Log with a file at path, and takes over what an earlier process left
// there. While another process uses the file, and without a path, entries are in memory
// until they are recorded.
func Open(path string, store Store, log *slog.Logger) (*Log, error) {
	l := &Log{store: store, log: log, path: path, wake: make(chan struct{}, 1)}
	return l, l.open()
}

// open opens the file, unless another process uses it.
func (l *Log) open() error {
	if l.path == "" || l.file != nil {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the file of activity: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return file.Close() // the other process ends, or is another replica
	}
	added := l.pending
	l.file, l.pending = file, nil
	if err := l.load(); err != nil {
		l.file, l.pending = nil, added
		return errors.Join(err, file.Close())
	}
	for _, e := range added {
		if err := l.append(e); err != nil {
			return err
		}
	}
	l.pending = append(l.pending, added...)
	return nil
}

// load reads what the file has. The last line can be incomplete after a crash.
func (l *Log) load() error {
	text, err := os.ReadFile(l.file.Name())
	if err != nil {
		return fmt.Errorf("read the file of activity: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e history.Activity
		if err := json.Unmarshal(line, &e); err != nil || e.ID == "" {
			l.log.Warn("unreadable line of activity skipped", "file", l.file.Name(), "bytes", len(line))
			continue
		}
		l.pending = append(l.pending, e)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		if _, err := l.file.Write([]byte("\n")); err != nil {
			return fmt.Errorf("write the file of activity: %w", err)
		}
	}
	return nil
}

// Add adds an entry. When it returns, the entry is on the disk, if there is one that
// can be written.
func (l *Log) Add(e history.Activity) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(e); err != nil {
		l.log.Warn("activity is in memory only until the database has it", "error", err)
	}
	if len(l.pending) < maxPending {
		l.pending = append(l.pending, e)
	} else if !l.dropped {
		l.dropped = true
		l.log.Error("activity is recorded after the next start only: the database did not answer for too long", "pending", len(l.pending))
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Log) append(e history.Activity) error {
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return l.file.Sync()
}

// Run records entries until ctx ends, and then what is left if that takes less than a
// second.
func (l *Log) Run(ctx context.Context) error {
	for failing := false; ; {
		err := l.flush(ctx)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				l.log.Warn("activity cannot be recorded; retrying", "error", err)
			} else {
				l.log.Info("activity is recorded again")
			}
		}
		wake, retry := l.wake, (<-chan time.Time)(nil)
		if err != nil { // only time helps
			wake, retry = nil, time.After(retryInterval)
		}
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryInterval)
			defer cancel()
			_ = l.flush(ending) // the next process records the rest
			return nil
		case <-retry:
		case <-wake:
		}
	}
}

// flush records all entries, and empties the file once the database has all of it.
func (l *Log) flush(ctx context.Context) error {
	l.mu.Lock()
	if err := l.open(); err != nil {
		l.log.Warn("activity is in memory only until the database has it", "error", err)
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		entries := slices.Clone(l.pending[:min(batch, len(l.pending))])
		if len(entries) == 0 {
			err := l.truncate()
			l.mu.Unlock()
			return err
		}
		l.mu.Unlock()
		if err := l.record(ctx, entries); err != nil {
			return err
		}
		l.mu.Lock()
		l.pending = slices.Delete(l.pending, 0, len(entries))
		l.mu.Unlock()
	}
}

func (l *Log) record(ctx context.Context, entries []history.Activity) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return history.WriteOrSetAside(ctx, l.store, Writer, entries, l.store.RecordActivity)
}

// truncate empties the file, all of which is recorded, unless it has more than memory.
func (l *Log) truncate() error {
	if l.file == nil || l.dropped {
		return nil
	}
	return l.file.Truncate(0)
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}
