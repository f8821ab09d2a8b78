package history

import (
	"context"
	"crypto/sha256"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SetAside is a record that the database refused.
type SetAside struct {
	At     time.Time
	Writer string // what it is, such as "activity"
	Reason string
	Record string // JSON
}

// SetAsides counts records that were set aside. The recorder registers it.
var SetAsides = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_history_set_aside_total",
	Help: "Records that the history database refused, by writer. They are kept in its table set_aside.",
}, []string{"writer"})

// Asider keeps records that cannot be stored. *Store is one.
type Asider interface {
	SetAside(ctx context.Context, s SetAside) error
}

// WriteOrSetAside writes items in their order. Items that the database refuses, each by
// itself, are set aside, so that those behind them are written. An error is one that time
// mends; items before it may be written, and write must accept them again.
func WriteOrSetAside[T any](ctx context.Context, store Asider, writer string, items []T, write func(context.Context, []T) error) error {
	if len(items) == 0 {
		return nil
	}
	err := write(ctx, items)
	if err == nil || Retryable(err) {
		return err
	}
	if half := len(items) / 2; half > 0 {
		if err := WriteOrSetAside(ctx, store, writer, items[:half], write); err != nil {
			return err
		}
		return WriteOrSetAside(ctx, store, writer, items[half:], write)
	}
	if err = write(ctx, items); err == nil || Retryable(err) {
		return err
	}
	record, jsonErr := json.Marshal(items[0])
	if jsonErr != nil {
		record = fmt.Appendf(nil, "%q", fmt.Sprintf("%+v", items[0]))
	}
	return store.SetAside(ctx, SetAside{At: time.Now(), Writer: writer, Reason: err.Error(), Record: string(record)})
}

// Codes of errors that are about the database, or its load, and not about a record.
var (
	sqliteTrouble   = []int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB}
	postgresTrouble = []string{"08", "25", "28", "3D", "40", "42", "53", "54", "55", "57", "58", "F0", "XX"} // classes
)

// Retryable reports whether time, or a person who repairs the database, mends an error. All
// others are about the record that was written.
func Retryable(err error) bool {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, sqldriver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, io.EOF, io.ErrUnexpectedEOF, ErrNotLeader, ErrOutOfOrder} {
		if errors.Is(err, known) {
			return true
		}
	}
	if failure := (*driver.Error)(nil); errors.As(err, &failure) {
		return slices.Contains(sqliteTrouble, failure.Code()&0xff)
	}
	if failure := (*pgconn.PgError)(nil); errors.As(err, &failure) {
		return len(failure.Code) < 2 || slices.Contains(postgresTrouble, failure.Code[:2])
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect)
}

// SetAside keeps a record. Of one that is kept already, the time and the reason change.
func (s *Store) SetAside(ctx context.Context, r SetAside) error {
	sum := sha256.Sum256([]byte(r.Writer + "\n" + r.Record))
	row := []any{hex.EncodeToString(sum[:]), toMillis(r.At), r.Writer, sanitize(r.Reason), sanitize(r.Record)}
	err := s.writeAny(ctx, "set a record aside", func(t *tx) error {
		return t.insert("set_aside (id, at, writer, reason, record)", [][]any{row}, "ON CONFLICT (id) DO UPDATE SET at = excluded.at, reason = excluded.reason", nil)
	})
	if err == nil {
		SetAsides.WithLabelValues(r.Writer).Inc()
		s.options.Log.Error("a record cannot be stored, and is kept in the table set_aside", "writer", r.Writer, "reason", r.Reason)
	}
	return err
}

// CountSetAside returns how many records were set aside since a time, and the latest; nil
// for none.
func (s *Store) CountSetAside(ctx context.Context, since time.Time) (n int, latest *SetAside, err error) {
	err = s.read(ctx, "count records that were set aside", func(t *tx) error {
		if err := t.queryRow("SELECT COUNT(*) FROM set_aside WHERE at >= ?", []any{toMillis(since)}, &n); err != nil || n == 0 {
			return err
		}
		var at int64
		latest = &SetAside{}
		err := t.queryRow("SELECT at, writer, reason, record FROM set_aside ORDER BY at DESC, id LIMIT 1", nil, &at, &latest.Writer, &latest.Reason, &latest.Record)
		latest.At = fromMillis(at)
		return err
	})
	return n, latest, err
}
