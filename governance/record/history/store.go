package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// callTimeout bounds each call, whatever the database does.
const callTimeout = 5 * time.Second

// pausedTimeout is how long a transaction may wait for its next statement.
const pausedTimeout = 3 * time.Second

// Options configure a Store.
type Options struct {
	Retention       time.Duration // of tasks, events, spans, rollups and gaps; 0 means 400 days
	PersonRetention time.Duration // of the names of persons, who have pseudonyms afterwards; 0 means Retention
	DetailRetention time.Duration // of the single intervals of a series; 0 means 35 days
	Log             *slog.Logger  // nil discards
}

// Store is the history in one database. It is safe for concurrent use. While the
// database is unreachable, full or closed, every method fails within seconds; it
// works again when the database does.
type Store struct {
	*dialect
	url            string
	options        Options
	writer, reader *sql.DB

	epoch atomic.Int64 // of the term that BeginTerm began; 0 for none

	migrateMu sync.Mutex
	migrated  atomic.Bool
	limit     time.Duration // of each call
}

// Open connects to a database and migrates its tables. url is postgres://… or the
// path of a SQLite file, which is created if it does not exist.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	s, err := New(url, options)
	if err != nil {
		return nil, err
	}
	if err := s.ensureMigrated(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// New returns a Store that connects and migrates with its first call, so that the
// database can be unreachable until then.
func New(url string, options Options) (*Store, error) {
	s := &Store{dialect: dialectOf(url), url: url, options: options, limit: callTimeout}
	if s.options.Retention <= 0 {
		s.options.Retention = 400 * 24 * time.Hour
	}
	if s.options.DetailRetention <= 0 {
		s.options.DetailRetention = 35 * 24 * time.Hour
	}
	if s.options.Log == nil {
		s.options.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.dialect == sqlite {
		s.writer, s.reader, err = openSQLite(url)
	} else {
		s.writer, err = openPostgres(url)
		s.reader = s.writer
	}
	if err != nil {
		return nil, fmt.Errorf("history: open %s: %w", s.name, err)
	}
	return s, nil
}

// ensureMigrated migrates the tables once the database answers.
func (s *Store) ensureMigrated(ctx context.Context) error {
	if s.migrated.Load() {
		return nil
	}
	s.migrateMu.Lock()
	defer s.migrateMu.Unlock()
	if s.migrated.Load() {
		return nil
	}
	if s.dialect == sqlite {
		if err := createFile(s.url); err != nil {
			return fmt.Errorf("history: create the file of %s: %w", s.name, err)
		}
	}
	// SQLite does not wait while another process sets the journal mode of a new file.
	deadline := time.Now().Add(callTimeout)
	for err := s.Ping(ctx); err != nil; err = s.Ping(ctx) {
		if !isBusy(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	// The caller may give up; a migration that has begun completes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.migrate(ctx, s.writer, s.options.Log); err != nil {
		return fmt.Errorf("history: migrate the tables of %s: %w", s.name, err)
	}
	s.migrated.Store(true)
	return nil
}

// Close closes all connections.
func (s *Store) Close() error {
	err := s.writer.Close()
	if s.reader != s.writer {
		err = errors.Join(err, s.reader.Close())
	}
	return err
}

// Dialect returns "SQLite" or "PostgreSQL".
func (s *Store) Dialect() string { return s.name }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if err := s.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("history: reach %s: %w", s.name, err)
	}
	return nil
}

// write runs do in the only transaction that writes at a time. It returns
// ErrNotLeader if another Store began a term since this one.
func (s *Store) write(ctx context.Context, op string, do func(*tx) error) error {
	return s.writeAny(ctx, op, func(t *tx) error {
		if err := t.checkTerm(s.epoch.Load()); err != nil {
			return err
		}
		return do(t)
	})
}

// writeAny is write without a check of the term.
func (s *Store) writeAny(ctx context.Context, op string, do func(*tx) error) error {
	return s.transaction(ctx, op, s.writer, nil, func(t *tx) error {
		if s.lock != "" {
			if err := t.exec(s.lock); err != nil {
				return err
			}
		}
		return do(t)
	})
}

// read runs do in a transaction that sees one snapshot of all tables.
func (s *Store) read(ctx context.Context, op string, do func(*tx) error) error {
	return s.transaction(ctx, op, s.reader, s.snapshot, do)
}

func (s *Store) transaction(ctx context.Context, op string, db *sql.DB, options *sql.TxOptions, do func(*tx) error) error {
	if err := s.ensureMigrated(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	begun, err := db.BeginTx(ctx, options)
	if err == nil {
		defer begun.Rollback() //nolint:errcheck // it was committed, or there is an error already
		if err = do(&tx{Tx: begun, dialect: s.dialect, ctx: ctx}); err == nil {
			err = begun.Commit()
		}
	}
	if err != nil {
		return fmt.Errorf("history: %s: %w", op, err)
	}
	return nil
}
