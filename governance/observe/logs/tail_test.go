package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// logServer serves a log over HTTP, which write writes. The server has no other end
// than the request's.
func logServer(t *testing.T, write func(w io.Writer) error) io.ReadCloser {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_ = write(w)
	}))
	server.EnableHTTP2 = true // as the API server
	server.StartTLS()
	t.Cleanup(server.Close)
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if response.ProtoMajor != 2 {
		t.Fatalf("got %s, want HTTP/2", response.Proto)
	}
	return response.Body
}

// all fetches batches until the log ends.
func all(t *testing.T, tail *Tail) (batches []Batch) {
	t.Helper()
	for {
		batch, err := tail.Next(t.Context(), time.Minute)
		if errors.Is(err, io.EOF) {
			return batches
		}
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, batch)
	}
}

func count(batches []Batch) (shown, skipped int) {
	for _, b := range batches {
		shown, skipped = shown+len(b.Lines), skipped+b.Skipped
	}
	return shown, skipped
}

// Every line is shown or counted as skipped, in order, and the last ones are shown.
func TestTailCountsSkippedLines(t *testing.T) {
	const lines = 100_000
	tail := newTail(logServer(t, func(w io.Writer) (err error) {
		for i := range lines {
			if _, err = fmt.Fprintf(w, "line %d\n", i); err != nil {
				return err
			}
		}
		return nil
	}), "", false)
	defer tail.Close()
	next := 0
	for _, b := range all(t, tail) {
		next += b.Skipped
		if len(b.Lines) > maxLines {
			t.Errorf("got a batch of %d lines, want at most %d", len(b.Lines), maxLines)
		}
		for _, line := range b.Lines {
			if want := fmt.Sprintf("line %d", next); line.Text != want {
				t.Fatalf("got %q, want %q", line.Text, want)
			}
			next++
		}
	}
	if next != lines {
		t.Errorf("got %d lines, want %d", next, lines)
	}
}

// A search shows matching lines, and does not count others as skipped.
func TestTailSearches(t *testing.T) {
	tail := newTail(logServer(t, func(w io.Writer) error {
		for i := range 10_000 {
			if _, err := fmt.Fprintf(w, "step %d \x1b[1mLo\x1b[0mss=%d\n", i, i%1000); err != nil {
				return err
			}
		}
		return nil
	}), "loss=7", false)
	defer tail.Close()
	shown, skipped := count(all(t, tail))
	if want := 1110; shown+skipped != want { // 7, 70 to 79, 700 to 799, ten times
		t.Errorf("got %d lines and %d skipped, want %d", shown, skipped, want)
	}
}

// What is written is shown soon, without a line break only at the end.
func TestTailFollows(t *testing.T) {
	more := make(chan string)
	tail := newTail(logServer(t, func(w io.Writer) error {
		for text := range more {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			if err := http.NewResponseController(w.(http.ResponseWriter)).Flush(); err != nil {
				return err
			}
		}
		return nil
	}), "", false)
	defer tail.Close()
	more <- "a\n"
	expect := func(want string) {
		t.Helper()
		batch, err := tail.Next(t.Context(), time.Minute)
		if err != nil || len(batch.Lines) != 1 || batch.Lines[0].Text != want {
			t.Fatalf("got %+v, %v, want %q", batch, err, want)
		}
	}
	expect("a")
	if batch, err := tail.Next(t.Context(), 10*time.Millisecond); err != nil || len(batch.Lines) > 0 {
		t.Errorf("while nothing is written: got %+v, %v, want nothing", batch, err)
	}
	more <- "b\n"
	expect("b")
	more <- "c"
	close(more)
	expect("c")
	if _, err := tail.Next(t.Context(), time.Minute); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v, want io.EOF", err)
	}
}

// A reader that stops waiting ends, and Close ends the request.
func TestTailEnds(t *testing.T) {
	ended := make(chan struct{})
	tail := newTail(logServer(t, func(w io.Writer) error {
		defer close(ended)
		for {
			if _, err := io.WriteString(w, strings.Repeat("x\n", 4<<10)); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}), "nothing", false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tail.Next(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
	tail.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the request goes on after Close")
	}
}

// maxGrowth is the memory that an open log may need.
const maxGrowth = 20 << 20

// 1 GB of log (128 MB outside make verify), as fast as it comes, needs less than maxGrowth: while its reader
// fetches, while the reader hangs, of short and of endless lines, and while it is
// searched.
func TestTailMemory(t *testing.T) {
	size := 128 << 20
	if os.Getenv("KUOTA_VERIFY") != "" {
		size = 1 << 30
	}
	line := []byte(strings.Repeat("0123456789abcde ", 6) + "END\n")
	for name, tc := range map[string]struct {
		block    []byte
		contains string
		hangs    bool
	}{
		"short lines":         {block: bytes.Repeat(line, 640)},
		"an endless line":     {block: bytes.Repeat([]byte("x"), 64<<10)},
		"binary":              {block: bytes.Repeat([]byte{0, 0xff, 0x1b, '\n'}, 16<<10)},
		"searched":            {block: bytes.Repeat(line, 640), contains: "end"},
		"a reader that hangs": {block: bytes.Repeat(line, 640), hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			limit := size
			if tc.contains != "" || tc.block[0] == 0 {
				limit = size / 8 // each line is cleaned
			}
			before := heap()
			tail := newTail(logServer(t, func(w io.Writer) error {
				for written := 0; written < limit; written += len(tc.block) {
					if _, err := w.Write(tc.block); err != nil {
						return err
					}
				}
				return nil
			}), tc.contains, false)
			defer tail.Close()
			var largest uint64
			began, stop := time.Now(), make(chan struct{})
			measured := make(chan struct{})
			go func() {
				defer close(measured)
				for ticker := time.NewTicker(20 * time.Millisecond); ; {
					select {
					case <-ticker.C:
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						largest = max(largest, m.HeapInuse+m.StackInuse)
					case <-stop:
						ticker.Stop()
						return
					}
				}
			}()
			var shown, skipped int
			if tc.hangs {
				for tail.ended() == nil {
					time.Sleep(10 * time.Millisecond) // until all is written; nothing is fetched
				}
			}
			shown, skipped = count(all(t, tail))
			close(stop)
			<-measured
			took := time.Since(began)
			t.Logf("%d MB in %s: %d lines shown, %d skipped, memory grew by %d KiB", limit>>20, took.Round(time.Millisecond), shown, skipped, (int64(largest)-int64(before))>>10)
			if growth := int64(largest) - int64(before); growth > maxGrowth {
				t.Errorf("memory grew by %d bytes, want at most %d", growth, maxGrowth)
			}
			if shown == 0 {
				t.Error("no line is shown")
			}
			if most := int(took/batchGap+2) * maxLines; shown > most {
				t.Errorf("%d lines in %s are more than a browser shows, want at most %d", shown, took, most)
			}
		})
	}
}

// heap returns the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// ended returns why the log ended, or nil.
func (t *Tail) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
