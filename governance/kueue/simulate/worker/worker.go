package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
)

// The reasons why a question has no answer.
var (
	ErrTimeout = errors.New("the simulation took too long")
	ErrMemory  = errors.New("the simulation needed too much memory")
	ErrCrashed = errors.New("the simulation failed")
)

// Defaults of a Worker.
const (
	DefaultTimeout = 15 * time.Second
	DefaultMemory  = 1 << 30
	DefaultIdle    = 5 * time.Minute
	// atOnce is how many questions a child works on at a time.
	atOnce = 2
	// grace is how long after its time a question that does not end keeps its child.
	grace = time.Second
)

// Worker asks a child process. It is safe for concurrent use. Close ends the child.
type Worker struct {
	// Command returns the child to start, which calls Serve.
	Command func() *exec.Cmd
	Timeout time.Duration // of a question, once it is its turn; 0 is DefaultTimeout
	Idle    time.Duration // until a child ends that no user asks; 0 is DefaultIdle

	slotsOnce sync.Once
	slots     chan struct{}
	// alone is held to read by a question that others may run beside, and to write
	// by one that is asked again because its child crashed.
	alone sync.RWMutex

	mu     sync.Mutex
	child  *child
	asking int         // questions that the child works on
	quit   *time.Timer // ends the idle child
	wanted time.Time   // until when it is kept for users
}

// child is a running child process.
type child struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *json.Encoder
	writing  sync.Mutex
	snapshot *simulate.Snapshot // that the child has; guarded by writing
	next     uint64             // guarded by writing

	mu      sync.Mutex
	waiting map[uint64]chan<- response
	ended   chan struct{} // closed when the process has ended
	err     error         // why; read after ended
}

// Ask answers a question about a snapshot. Questions wait for their turn until ctx
// ends. The error is ErrTimeout, ErrMemory, ErrCrashed, that of ctx, or a reason
// why the snapshot cannot be simulated.
func (w *Worker) Ask(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	w.slotsOnce.Do(func() { w.slots = make(chan struct{}, atOnce) })
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-w.slots }()
	report, err := w.beside(ctx, s, q)
	if errors.Is(err, ErrCrashed) && ctx.Err() == nil { // perhaps because of another question
		w.alone.Lock()
		defer w.alone.Unlock()
		report, err = w.try(ctx, s, q)
	}
	return report, err
}

// beside tries while other questions may be running.
func (w *Worker) beside(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	w.alone.RLock()
	defer w.alone.RUnlock() // also if it panics
	return w.try(ctx, s, q)
}

func (w *Worker) try(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	c, err := w.acquire()
	if err != nil {
		return nil, fmt.Errorf("start the simulation: %w", errors.Join(ErrCrashed, err))
	}
	defer w.release(q.Unattended)
	limit := cmp.Or(w.Timeout, DefaultTimeout)
	var late atomic.Bool
	patience := time.AfterFunc(limit+grace, func() { // a child that hangs may not read either
		late.Store(true)
		c.kill()
	})
	defer patience.Stop()
	id, answer, err := c.send(s, q, limit)
	defer c.forget(id)
	if err != nil {
		c.kill()
		answer = nil
	}
	select {
	case a := <-answer:
		switch {
		case a.Timeout:
			return nil, ErrTimeout
		case a.Error != "":
			return nil, errors.New(a.Error)
		}
		return a.Report, nil
	case <-c.ended:
		if late.Load() {
			return nil, ErrTimeout
		}
		return nil, c.reason()
	case <-ctx.Done(): // the child finishes or times out by itself
		return nil, ctx.Err()
	}
}

// acquire returns the child for a question, and starts one if there is none.
func (w *Worker) acquire() (*child, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.child != nil {
		select {
		case <-w.child.ended:
			w.child = nil
		default:
		}
	}
	if w.child == nil {
		c, err := start(w.Command())
		if err != nil {
			return nil, err
		}
		w.child = c
	}
	if w.quit != nil {
		w.quit.Stop()
	}
	w.asking++
	return w.child, nil
}

// release lets the child end some time after the last question of a user.
func (w *Worker) release(unattended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !unattended {
		w.wanted = time.Now().Add(cmp.Or(w.Idle, DefaultIdle))
	}
	if w.asking--; w.asking > 0 {
		return
	}
	w.quit = time.AfterFunc(time.Until(w.wanted), func() {
		w.mu.Lock()
		idle := w.asking == 0
		w.mu.Unlock()
		if idle {
			w.Close()
		}
	})
}

// Close ends the child, if one runs, and waits for its end. The next question starts
// another.
func (w *Worker) Close() {
	w.mu.Lock()
	c := w.child
	w.child = nil
	if w.quit != nil {
		w.quit.Stop()
	}
	w.mu.Unlock()
	if c != nil {
		c.kill()
		<-c.ended
	}
}

func start(cmd *exec.Cmd) (*child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, in: in, out: json.NewEncoder(in), snapshot: &simulate.Snapshot{}, waiting: map[uint64]chan<- response{}, ended: make(chan struct{})}
	go c.read(out)
	return c, nil
}

// read passes the answers on until the process ends.
func (c *child) read(out io.Reader) {
	answers := json.NewDecoder(out)
	for {
		var a response
		if err := answers.Decode(&a); err != nil {
			break
		}
		c.mu.Lock()
		to := c.waiting[a.ID]
		c.mu.Unlock()
		if to != nil {
			to <- a // has room for it
		}
	}
	c.kill() // it wrote no answer
	c.err = c.cmd.Wait()
	close(c.ended)
}

func (c *child) kill() {
	c.in.Close() //nolint:errcheck // the process is ending
	if p := c.cmd.Process; p != nil {
		p.Kill() //nolint:errcheck // it may have ended
	}
}

// reason returns why the child ended. The caller has seen that it did.
func (c *child) reason() error {
	if exit, ok := errors.AsType[*exec.ExitError](c.err); ok && exit.ExitCode() == outOfMemory {
		return ErrMemory
	}
	return fmt.Errorf("%w: %w", ErrCrashed, errors.Join(c.err, os.ErrProcessDone))
}

// send writes a request with what changed since the last one.
func (c *child) send(s *simulate.Snapshot, q *simulate.Question, limit time.Duration) (uint64, <-chan response, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.next++
	answer := make(chan response, 1)
	c.mu.Lock()
	c.waiting[c.next] = answer
	c.mu.Unlock()
	r := request{ID: c.next, Update: simulate.Difference(c.snapshot, s), Time: s.Time, Version: s.KueueVersion, Question: q, Limit: limit}
	if err := c.out.Encode(r); err != nil {
		return c.next, nil, err
	}
	c.snapshot = s
	return c.next, answer, nil
}

func (c *child) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}
