package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/kueue/simulate/worker"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const asChild = "KUOTA_TEST_WORKER"

const testMemory = 256 << 20

// TestMain is the child when a Worker starts this binary. Targets with these names
// make it fail.
func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	memory, err := strconv.ParseInt(os.Getenv(asChild), 10, 64)
	if err != nil {
		panic(err)
	}
	e := &engine.Engine{}
	err = worker.Serve(os.Stdin, os.Stdout, memory, func(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
		switch q.Target {
		case "panic":
			panic("as the test wants")
		case "hang":
			select {}
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "memory":
			var kept [][]byte
			for {
				kept = append(kept, make([]byte, 1<<20))
				for i := 0; i < 1<<20; i += 4096 {
					kept[len(kept)-1][i] = 1
				}
			}
		}
		return e.Answer(ctx, s, q)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newWorker(t *testing.T) *worker.Worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker.Worker{Timeout: 5 * time.Second, Command: func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asChild, testMemory))
		return cmd
	}}
	t.Cleanup(w.Close)
	return w
}

func snapshot(queues ...string) *simulate.Snapshot {
	s := &simulate.Snapshot{Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	for _, name := range queues {
		s.ClusterQueues = append(s.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s
}

// TestFailures asks questions that crash, hang or exhaust the child: each costs its
// own answer, the question beside it and the one after it are answered.
func TestFailures(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]error{"panic": worker.ErrCrashed, "hang": worker.ErrTimeout, "slow": worker.ErrTimeout, "memory": worker.ErrMemory} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t)
			if want != worker.ErrTimeout {
				w.Timeout = time.Minute
			}
			s := snapshot("a")
			var beside sync.WaitGroup
			beside.Go(func() {
				within, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 3 {
					if _, err := w.Ask(within, s, &simulate.Question{}); err != nil {
						t.Errorf("beside: %v", err)
					}
				}
			})
			if _, err := w.Ask(t.Context(), s, &simulate.Question{Target: target}); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			beside.Wait()
			if _, err := w.Ask(t.Context(), s, &simulate.Question{}); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestStopped stops the child, so that it reads nothing, and asks about more than a pipe
// holds: the question times out, and another child answers the next.
func TestStopped(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	var child *exec.Cmd
	command := w.Command
	w.Command = func() *exec.Cmd { child = command(); return child }
	if _, err := w.Ask(t.Context(), snapshot(), &simulate.Question{}); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	large := snapshot(strings.Repeat("a", 1<<20))
	if _, err := w.Ask(t.Context(), large, &simulate.Question{}); !errors.Is(err, worker.ErrTimeout) {
		t.Errorf("error %v, want %v", err, worker.ErrTimeout)
	}
	if _, err := w.Ask(t.Context(), large, &simulate.Question{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestSnapshots asks one child about snapshots that differ: it gets what changed.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	for _, queues := range [][]string{{"a"}, {"a", "b"}, {"b"}, {}, {"a", "b", "c"}} {
		report, err := w.Ask(t.Context(), snapshot(queues...), &simulate.Question{})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Queues) != len(queues) {
			t.Errorf("queues %v: the report has %v", queues, report.Queues)
		}
		for _, name := range queues {
			if _, has := report.Queues[name]; !has {
				t.Errorf("queues %v: the report lacks %s", queues, name)
			}
		}
	}
}

// TestIdle ends the child that is not asked, and starts another, which ends at once: no
// user waited for it.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.Idle = 50 * time.Millisecond
	var children []*exec.Cmd
	command := w.Command
	w.Command = func() *exec.Cmd {
		children = append(children, command())
		return children[len(children)-1]
	}
	for i := range 2 {
		unattended := i == 1
		if unattended {
			w.Idle = time.Hour
		}
		if _, err := w.Ask(t.Context(), snapshot(), &simulate.Question{Unattended: unattended}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); children[len(children)-1].Process.Signal(syscall.Signal(0)) == nil; {
			if time.Now().After(deadline) {
				t.Fatal("the child runs on")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(children) != 2 {
		t.Errorf("%d children, want 2", len(children))
	}
	if worker.DefaultIdle != 5*time.Minute {
		t.Errorf("a child that is not asked ends after %s, want five minutes", worker.DefaultIdle)
	}
}

// TestAtOnce asks four questions that take as long as they may: two wait for their
// turn.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	if _, err := w.Ask(t.Context(), snapshot(), &simulate.Question{}); err != nil { // starts the child
		t.Fatal(err)
	}
	w.Timeout = 200 * time.Millisecond
	began := time.Now()
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			if _, err := w.Ask(t.Context(), snapshot(), &simulate.Question{Target: "slow"}); !errors.Is(err, worker.ErrTimeout) {
				t.Errorf("error %v, want %v", err, worker.ErrTimeout)
			}
		})
	}
	asking.Wait()
	if took := time.Since(began); took < 2*w.Timeout {
		t.Errorf("four questions took %s, want twice their %s", took, w.Timeout)
	}
}
