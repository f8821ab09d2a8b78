package history

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history/historytest"
)

// soon bounds how long a call may take to fail.
const soon = callTimeout + 2*time.Second

// testFullDisk fills the disk of the SQLite file and frees it again.
func testFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	free := func(*Store) { ok(t, os.Remove(filepath.Join(dir, "filler"))) }
	fill := func(*Store) { ok(t, os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 12<<20), 0o600)) }
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err == nil {
		t.Cleanup(func() { ok(t, syscall.Unmount(dir, 0)) })
	} else { // SQLite treats a file that cannot grow the same way
		fill = func(s *Store) { ok(t, s.writer.QueryRow("PRAGMA max_page_count = 700").Scan(new(int))) }
		free = func(s *Store) { ok(t, s.writer.QueryRow("PRAGMA max_page_count = 100000").Scan(new(int))) }
	}
	s := impatient(open(t, filepath.Join(dir, "history.db"), Options{}))
	fill(s)
	recorded := 0
	record := func() error {
		var records []Record
		for n := range 100 {
			task := aTask(fmt.Sprint("u", recorded, "-", n))
			records = append(records, Record{Task: task, Events: []Event{{WorkloadUID: task.UID, Message: strings.Repeat("x", 1000)}}, Spans: []Span{{task.UID, Wait, start, start.Add(time.Minute)}}})
		}
		err := s.RecordTasks(ctx, records)
		if err == nil {
			recorded++
		}
		return err
	}
	checkAll := func() {
		t.Helper()
		got := must[[]ClassStats](t)(s.ClassStats(ctx, nil, start.Add(-time.Hour), start.Add(time.Hour)))
		if len(got) != 1 || got[0].Waits != int64(100*recorded) {
			t.Fatalf("%v after %d times 100 waits", got, recorded)
		}
	}
	var err error
	for err == nil {
		if err = record(); recorded > 1000 {
			t.Fatal("the disk does not fill")
		}
	}
	if !strings.Contains(err.Error(), "full") {
		t.Errorf("error of a full disk: %v", err)
	}
	checkAll()
	if err := record(); err == nil {
		t.Error("recording succeeds on a full disk")
	}
	free(s)
	ok(t, record())
	checkAll()
	ok(t, s.Close())
	s = impatient(open(t, filepath.Join(dir, "history.db"), Options{}))
	checkAll()
	ok(t, s.Close())
}

func testServerStopped(t *testing.T, server *historytest.Server) {
	ctx := context.Background()
	url := server.Database(t)
	s := impatient(open(t, url, Options{}))
	ok(t, s.RecordTasks(ctx, []Record{numbered(1)}))
	server.Stop(t)
	fails(t, s)
	if s, err := Open(ctx, url, Options{}); err == nil {
		s.Close()
		t.Error("Open succeeds while the server is stopped")
	}
	server.Restart(t)
	works(t, s)
}

// testNetworkLost checks a network that drops all packets.
func testNetworkLost(t *testing.T, server *historytest.Server) {
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { listener.Close() })
	var lost atomic.Bool
	copy := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if lost.Load() {
				io.Copy(io.Discard, from) //nolint:errcheck // until it is closed
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("unix", server.Socket())
			if err != nil {
				client.Close()
				continue
			}
			go copy(client, backend)
			go copy(backend, client)
		}
	}()
	name := server.Database(t)
	name = name[strings.LastIndex(name, "/")+1 : strings.Index(name, "?")]
	s := impatient(open(t, fmt.Sprintf("postgres://kuota@%s/%s?sslmode=disable", listener.Addr(), name), Options{}))
	ok(t, s.RecordTasks(context.Background(), []Record{numbered(1)}))
	lost.Store(true)
	fails(t, s)
	lost.Store(false)
	works(t, s)
}

// fails checks that calls fail soon while the database is unreachable.
func fails(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	var group sync.WaitGroup
	for name, call := range map[string]func() error{
		"RecordTasks":   func() error { return s.RecordTasks(ctx, []Record{numbered(2)}) },
		"AppendSamples": func() error { return s.AppendSamples(ctx, []Sample{{At: start}}) },
		"ClassStats":    func() error { _, err := s.ClassStats(ctx, nil, start, start.Add(time.Hour)); return err },
		"Ping":          func() error { return s.Ping(ctx) },
	} {
		group.Go(func() {
			begun := time.Now()
			if err := call(); err == nil {
				t.Errorf("%s succeeds while the database is unreachable", name)
			}
			if took := time.Since(begun); took > soon {
				t.Errorf("%s took %s to fail", name, took)
			}
		})
	}
	group.Wait()
}

// works checks that the store works after the database is back.
func works(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	ok(t, s.Ping(ctx))
	ok(t, s.RecordTasks(ctx, []Record{numbered(1), numbered(2)}))
	got := must[[]ClassStats](t)(s.ClassStats(ctx, nil, start.Add(-24*time.Hour), start.Add(24*time.Hour)))
	if len(got) != 1 || got[0].Waits != 2 {
		t.Errorf("after the database is back: %v", got)
	}
}
