package history

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations
var migrations embed.FS

// dialect contains what differs between the databases. Only one connection writes
// at a time.
type dialect struct {
	name            string // as messages call it
	kind            goose.Dialect
	folder          string // of the migrations
	numbered        bool   // placeholders are $1, $2 rather than ?
	least, greatest string // of two numbers
	openRuns        string // hint to read the runs of task_usage that go on by their index
	lock            string // statement that serializes writers; empty if the driver does
	snapshot        *sql.TxOptions
}

var (
	sqlite = &dialect{name: "SQLite", kind: goose.DialectSQLite3, folder: "sqlite", least: "min", greatest: "max",
		openRuns: " INDEXED BY task_usage_open",
		snapshot: &sql.TxOptions{ReadOnly: true}}
	postgres = &dialect{name: "PostgreSQL", kind: goose.DialectPostgres, folder: "postgres", numbered: true, least: "least", greatest: "greatest",
		lock:     "SELECT pg_advisory_xact_lock(5868126)",
		snapshot: &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}}
)

// dialectOf returns the dialect of a URL.
func dialectOf(url string) *dialect {
	if IsServer(url) {
		return postgres
	}
	return sqlite
}

// IsServer reports whether a URL is that of a database server, and not of a file.
func IsServer(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// openSQLite opens connection pools and touches no file yet.
func openSQLite(path string) (writer, reader *sql.DB, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	source := func(pragmas ...string) string {
		// temp_store: a large sort would otherwise need a folder for temporary files,
		// which a container with a read-only root file system does not have.
		pragmas = append([]string{"busy_timeout(4000)", "temp_store(MEMORY)", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(67108864)"}, pragmas...)
		return (&url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode()}).String()
	}
	if writer, err = sql.Open("sqlite", source("cache_size(-4000)")); err != nil {
		return nil, nil, err
	}
	writer.SetMaxOpenConns(1)
	if reader, err = sql.Open("sqlite", source("cache_size(-4000)", "query_only(1)")); err != nil {
		return nil, nil, err
	}
	reader.SetMaxOpenConns(4)
	reader.SetMaxIdleConns(4)
	return writer, reader, nil
}

// isBusy reports whether another process has the lock of a SQLite file.
func isBusy(err error) bool {
	var failure *driver.Error
	return errors.As(err, &failure) && failure.Code()&0xff == sqlite3.SQLITE_BUSY
}

// createFile creates the file of a SQLite database if it does not exist, readable
// by its owner only.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// openPostgres opens a connection pool. It accepts every URL that pgx accepts, and
// sets short timeouts that the URL can override.
func openPostgres(url string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout <= 0 || config.ConnectTimeout > callTimeout {
		config.ConnectTimeout = 3 * time.Second
	}
	for parameter, value := range map[string]string{
		"application_name":  "kuota",
		"statement_timeout": strconv.FormatInt(callTimeout.Milliseconds(), 10),
		// A replica that is paused within a transaction must not keep the lock of writers.
		"idle_in_transaction_session_timeout": strconv.FormatInt(pausedTimeout.Milliseconds(), 10),
	} {
		if config.RuntimeParams[parameter] == "" {
			config.RuntimeParams[parameter] = value
		}
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(6)
	db.SetMaxIdleConns(3)
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}

// migrate migrates the tables to this version. Several processes may do so at
// once. It leaves tables of a newer version as they are: their migrations only add
// what this version does not read.
func (d *dialect) migrate(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	return d.migrateWith(ctx, migrations, db, log)
}

// migrateWith migrates with the migrations of a version.
func (d *dialect) migrateWith(ctx context.Context, migrations fs.FS, db *sql.DB, log *slog.Logger) error {
	files, err := fs.Sub(migrations, "migrations/"+d.folder)
	if err != nil {
		return err
	}
	var options []goose.ProviderOption
	if d == postgres {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 30))
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	// SQLite has no such lock: the second process fails because the tables exist,
	// and its next attempt finds nothing to do.
	for try := 0; ; try++ {
		provider, err := goose.NewProvider(d.kind, db, files, options...)
		if err != nil {
			return err
		}
		done, err := provider.Up(ctx)
		for _, one := range done {
			log.Info("history tables migrated", "database", d.name, "version", one.Source.Version, "took", one.Duration)
		}
		if err == nil || try == 3 || ctx.Err() != nil {
			return err
		}
	}
}

// rebind replaces each ? with the placeholder of the database. No statement
// contains ? in a string.
func (d *dialect) rebind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, part := range strings.SplitAfter(query, "?") {
		if text, ok := strings.CutSuffix(part, "?"); ok {
			n++
			fmt.Fprintf(&b, "%s$%d", text, n)
		} else {
			b.WriteString(part)
		}
	}
	return b.String()
}
