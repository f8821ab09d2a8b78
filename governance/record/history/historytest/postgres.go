// Package historytest starts a PostgreSQL server for tests. It uses Debian's
// package, which `make databases` installs.
package historytest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server without durability. It ends with the test or with
// the test's process.
type Server struct {
	bin, dir  string
	as        *syscall.Credential // user of the server; nil for the user of the test
	ended     chan struct{}
	process   *os.Process
	databases int
	address   string // where it listens beside its socket; empty for nowhere
}

// Start starts a server; it fails the test if PostgreSQL is not installed.
func Start(t testing.TB) *Server {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Fatal("no PostgreSQL server in /usr/lib/postgresql: install it with `make databases`")
	}
	s := &Server{bin: filepath.Dir(slices.Max(found))}
	if s.dir, err = os.MkdirTemp(inMemory(), "kuota-postgres-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		s.as = account(t)
		if err := os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "kuota", "--auth=trust", "--encoding=UTF8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(func() { s.Stop(t) })
	s.Restart(t)
	return s
}

// inMemory returns a folder in memory with room for a server; empty for none. On a busy disk, to
// delete one can take minutes.
func inMemory() string {
	const folder, room = "/dev/shm", 4 << 30
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil || stat.Bavail*uint64(stat.Bsize) < room {
		return ""
	}
	return folder
}

// account returns the user that Debian's package creates.
func account(t testing.TB) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(s.bin, name), args...)
	command.Dir = s.dir
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT}
	return command
}

// Restart starts a stopped server and waits until it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses="+s.address, "-c", "fsync=off", "-c", "synchronous_commit=off",
		"-c", "full_page_writes=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "max_wal_size=256MB", "-c", "shared_buffers=128MB")
	command.Stdout, command.Stderr = log, log
	started := make(chan error)
	ended := make(chan struct{})
	go func() {
		// The kernel ends the server with the thread that started it.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			command.Wait() //nolint:errcheck // its log has the error
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	s.process, s.ended = command.Process, ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		connection, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			tick.Stop()
			connection.Close(ctx) //nolint:errcheck // it answered
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("the PostgreSQL server ended: %s", s.log())
		case <-ctx.Done():
			t.Fatalf("the PostgreSQL server does not answer: %v\n%s", err, s.log())
		}
	}
}

func (s *Server) log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop stops the server and closes all connections to it.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	<-s.ended
	s.process = nil
}

// Listen makes the server listen on port 5432 of an address too, without passwords for
// private networks. It returns the URL of an empty database there.
func (s *Server) Listen(t testing.TB, address string) string {
	t.Helper()
	rules, err := os.OpenFile(filepath.Join(s.data(), "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = rules.WriteString("host all all 10.0.0.0/8 trust\n")
		err = errors.Join(err, rules.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.address = address
	s.Stop(t)
	s.Restart(t)
	local, err := url.Parse(s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://kuota@" + address + ":5432" + local.Path + "?sslmode=disable"
}

// Patient, behind a URL of Database, gives statements and transactions of a test the time
// that a busy machine takes.
const Patient = "&statement_timeout=60000&idle_in_transaction_session_timeout=60000"

// Database creates an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	s.databases++
	name := fmt.Sprintf("history%d", s.databases)
	if _, err := connection.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL returns the URL of a database.
func (s *Server) URL(database string) string {
	return "postgres://kuota@/" + database + "?" + url.Values{"host": {s.dir}}.Encode()
}
