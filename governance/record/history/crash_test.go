package history

import (
	"bufio"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writerURL is the environment variable that makes this test binary write to a
// store until it is killed.
const writerURL = "KUOTA_HISTORY_WRITER"

// counter increases by one with each sample; samples are beat apart.
var counter = SeriesKey{"", "a100", "counter", Used}

const beat = 7 * time.Minute

// numbered returns the record that precedes sample n.
func numbered(n int64) Record {
	at := start.Add(time.Duration(n) * beat)
	task := Task{UID: fmt.Sprint("u", n), Team: "vision", PriorityClass: "high", SubmittedAt: at}
	record := Record{Task: task}
	for k := range 4 {
		record.Events = append(record.Events, Event{WorkloadUID: task.UID, Type: fmt.Sprint("event ", k), At: at})
	}
	record.Spans = []Span{{task.UID, Wait, at, at.Add(time.Minute)}, {task.UID, Run, at.Add(time.Minute), at.Add(3 * time.Minute)}}
	return record
}

// writeUntilKilled continues where the store ends: it records again the task that
// may be recorded, and the sample that is not.
func writeUntilKilled(url string) {
	ctx := context.Background()
	end := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	s, err := Open(ctx, url, Options{})
	end(err)
	current, err := s.CurrentAmounts(ctx)
	end(err)
	for n := current[counter] + 1; ; n++ {
		end(s.RecordTasks(ctx, []Record{numbered(n - 1), numbered(n)}))
		end(s.AppendSamples(ctx, []Sample{{start.Add(time.Duration(n) * beat), []Amount{{counter, n}}}}))
		fmt.Println(n)
	}
}

// testKilled kills a writing process at random times. Everything that it reported as
// written is stored, whole, and counted once.
func testKilled(t *testing.T, url string) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(6, uint64(time.Now().UnixNano())))
	s := open(t, url, Options{})
	reported := int64(0)
	for range 20 {
		reported = max(reported, runAndKill(t, url, 1+r.IntN(30), time.Duration(r.IntN(3000))*time.Microsecond))
		ok(t, s.RecordTasks(ctx, nil)) // waits until the server ends the transaction of the killed process
		n := must[map[SeriesKey]int64](t)(s.CurrentAmounts(ctx))[counter]
		if n < reported {
			t.Fatalf("sample %d was written, and the last one stored is %d", reported, n)
		}
		seen := must[time.Time](t)(s.SampledUntil(ctx))
		if want := start.Add(time.Duration(n) * beat); !seen.Equal(want) {
			t.Fatalf("SampledUntil is %s, and sample %d was at %s", seen, n, want)
		}
		total := must[map[SeriesKey]Total](t)(s.Totals(ctx, []SeriesKey{counter}, start, seen.Add(time.Hour)))[counter]
		if want := big.NewInt(n * (n - 1) / 2 * beat.Milliseconds()); total.Sum.Cmp(want) != 0 || total.Known != time.Duration(n-1)*beat {
			t.Fatalf("after %d samples the total is %s in %s, want %s", n, total.Sum, total.Known, want)
		}
		tasks := must[[]Task](t)(s.Tasks(ctx, Query{Limit: 1 << 20}))
		if first, last := int64(len(tasks)), n+2; first != n+1 && first != last {
			t.Fatalf("%d tasks after %d samples", len(tasks), n)
		}
		count := int64(len(tasks))
		want := []ClassStats{{Class: "high", Waits: count, Runs: count, WaitMillis: count * 60_000, RunMillis: count * 120_000, LongestWait: time.Minute, LongestRun: 2 * time.Minute}}
		for _, teams := range [][]string{nil, {"vision"}} {
			if diff := cmp.Diff(want, must[[]ClassStats](t)(s.ClassStats(ctx, teams, start.Truncate(time.Hour), seen.Add(48*time.Hour)))); diff != "" {
				t.Fatalf("statistics of %v (-want +got):\n%s", teams, diff)
			}
		}
		for _, task := range tasks {
			if _, events, _, err := s.Timeline(ctx, task.UID); err != nil || len(events) != 4 {
				t.Fatalf("task %s has %d events: %v", task.UID, len(events), err)
			}
		}
	}
}

// runAndKill kills a writer some time after it reported a number of samples, and
// returns the last sample that it reported.
func runAndKill(t *testing.T, url string, samples int, after time.Duration) int64 {
	t.Helper()
	writer := exec.Command(os.Args[0], "-test.run=^$")
	writer.Env = append(os.Environ(), writerURL+"="+url)
	writer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := must[interface {
		Read([]byte) (int, error)
		Close() error
	}](t)(writer.StdoutPipe())
	ok(t, writer.Start())
	last := int64(0)
	var once sync.Once
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatalf("the writer printed %q", lines.Text())
		}
		if n >= samples {
			once.Do(func() { time.AfterFunc(after, func() { writer.Process.Kill() }) })
		}
	}
	writer.Wait() //nolint:errcheck // it was killed
	if last == 0 {
		t.Fatal("the writer wrote nothing")
	}
	return last
}

// Several processes that start at once migrate the tables once, and write one after
// the other.
func testTwoOpens(t *testing.T, url string) {
	ctx := context.Background()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			s, err := Open(ctx, url, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for k := range 20 {
				at := start.Add(time.Duration(k) * time.Hour)
				uid := fmt.Sprint("u", n%2, "-", k) // each recorded by two stores
				if err := s.RecordTasks(ctx, []Record{{Task: Task{UID: uid, Team: "vision", SubmittedAt: at}, Spans: []Span{{uid, Wait, at, at.Add(time.Minute)}}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	s := open(t, url, Options{})
	want := []ClassStats{{Waits: 40, WaitMillis: 40 * 60_000, LongestWait: time.Minute}}
	if diff := cmp.Diff(want, must[[]ClassStats](t)(s.ClassStats(ctx, nil, start.Add(-time.Hour), start.Add(48*time.Hour)))); diff != "" {
		t.Error(diff)
	}
}
