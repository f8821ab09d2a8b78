package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
)

// outOfMemory is the exit code of a child that used more memory than its limit.
const outOfMemory = 3

// memoryCheckPeriod is how often a child compares its memory with its limit.
const memoryCheckPeriod = 50 * time.Millisecond

// gcPercent is how much a child's heap grows before garbage is collected. It has its
// memory for itself and little of it lives long: at Go's default of 100, collections
// take a quarter of its time.
const gcPercent = 400

// niceness is the priority of a child beside the console, whose pages come first: a third of the
// processor time where both want it.
const niceness = 5

// Answer answers a question about a snapshot, within the time of ctx.
type Answer func(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error)

// Serve is the child: it answers the requests of a Worker until in ends. It is to be
// called by a process that does nothing else, and ends that process if it uses more
// than memory bytes.
func Serve(in io.Reader, out io.Writer, memory int64, answer Answer) error {
	yield()
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memory * 3 / 4) // collects garbage harder before the limit
	go watchMemory(memory)
	var (
		snapshot = &simulate.Snapshot{}
		requests = json.NewDecoder(in)
		writing  sync.Mutex
		answers  = json.NewEncoder(out)
	)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil // what is running is no longer wanted
		} else if err != nil {
			return err
		}
		if snapshot.Time.IsZero() || !r.Update.Empty() { // the same one keeps what was computed of it
			snapshot = r.Update.Apply(snapshot)
			snapshot.Time, snapshot.KueueVersion = r.Time, r.Version
		}
		of := snapshot
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), r.Limit)
			defer cancel()
			a := response{ID: r.ID}
			var err error
			if a.Report, err = answer(ctx, of, r.Question); err != nil {
				a.Error, a.Timeout = err.Error(), errors.Is(err, context.DeadlineExceeded)
			}
			writing.Lock()
			defer writing.Unlock()
			if err := answers.Encode(a); err != nil {
				os.Exit(1) // nobody reads the answers
			}
		}()
	}
}

// yield lowers the priority of all threads of the process, and so of those that they start.
func yield() {
	threads, _ := os.ReadDir("/proc/self/task") // none on other systems
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)
		}
	}
}

// watchMemory ends the process when it uses more than limit bytes.
func watchMemory(limit int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		metrics.Read(samples)
		if used := samples[0].Value.Uint64() - samples[1].Value.Uint64(); used > uint64(limit) { //nolint:gosec // a limit is positive
			os.Exit(outOfMemory)
		}
		time.Sleep(memoryCheckPeriod)
	}
}
