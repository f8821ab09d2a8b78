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

// patience is how long one call may take, whatever the database does.
const patience = 5 * time.Second

// Options are how long is kept what.
type Options struct {
	Retention       time.Duration // tasks, steps, spans, sums and gaps; 0 takes 400 days
	DetailRetention time.Duration // each single interval of an amount; 0 takes 35 days
	Log             *slog.Logger  // nil for none
}

// Store is the history in one database. Its methods may be called at any time
// from anywhere; each of them fails within seconds where the database is lost,
// full or closed, and works again once that is over.
type Store struct {
	*dialect
	url            string
	options        Options
	writer, reader *sql.DB

	making sync.Mutex
	made   atomic.Bool // the tables
}

// Open connects to a database and brings its tables to what this version reads.
// url is postgres://…, or the path of a SQLite file, which is made where there is
// none.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	s, err := New(url, options)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Reach is Open for a database that may not be there yet: it is connected to, and
// its tables are made, when it is asked for something.
func New(url string, options Options) (*Store, error) {
	s := &Store{dialect: dialectOf(url), url: url, options: options}
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
		return nil, fmt.Errorf("history: opening %s: %w", s.name, err)
	}
	return s, nil
}

// ready makes the tables, once the database answers.
func (s *Store) ready(ctx context.Context) error {
	if s.made.Load() {
		return nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	if s.made.Load() {
		return nil
	}
	if s.dialect == sqlite {
		if err := makeFile(s.url); err != nil {
			return fmt.Errorf("history: making the file of %s: %w", s.name, err)
		}
	}
	if err := s.Ping(ctx); err != nil {
		return err
	}
	// Whoever asked may give up: tables that are being made are made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.migrate(ctx, s.writer, s.options.Log); err != nil {
		return fmt.Errorf("history: bringing the tables of %s up to date: %w", s.name, err)
	}
	s.made.Store(true)
	return nil
}

// Close ends all that goes on.
func (s *Store) Close() error {
	err := s.writer.Close()
	if s.reader != s.writer {
		err = errors.Join(err, s.reader.Close())
	}
	return err
}

// Dialect is SQLite or PostgreSQL.
func (s *Store) Dialect() string { return s.name }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("history: reaching %s: %w", s.name, err)
	}
	return nil
}

// write runs one transaction, the only one that writes meanwhile. Either all of
// it lasts or nothing.
func (s *Store) write(ctx context.Context, what string, do func(*tx) error) error {
	return s.transaction(ctx, what, s.writer, nil, func(t *tx) error {
		if s.lock != "" {
			if err := t.exec(s.lock); err != nil {
				return err
			}
		}
		return do(t)
	})
}

// read runs one transaction that sees all tables as of one moment.
func (s *Store) read(ctx context.Context, what string, do func(*tx) error) error {
	return s.transaction(ctx, what, s.reader, s.snapshot, do)
}

func (s *Store) transaction(ctx context.Context, what string, db *sql.DB, options *sql.TxOptions, do func(*tx) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun, err := db.BeginTx(ctx, options)
	if err == nil {
		defer begun.Rollback() //nolint:errcheck // it was committed, or there is an error already
		if err = do(&tx{Tx: begun, dialect: s.dialect, ctx: ctx}); err == nil {
			err = begun.Commit()
		}
	}
	if err != nil {
		return fmt.Errorf("history: %s: %w", what, err)
	}
	return nil
}
