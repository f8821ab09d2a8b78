package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// state is what status shows of a component.
type state string

const (
	stopped  state = "stopped"
	starting state = "starting"
	running  state = "up"
	failed   state = "failed"  // ended by itself; its owner waits for a reason to try again
	waiting  state = "waiting" // ended because the API server was away, and comes back with it
)

// startLimit is generous: the same start that takes two seconds alone takes
// many while tests use both cores.
const startLimit = 2 * time.Minute

// component is one program that the supervisor runs.
type component struct {
	name  string
	spec  spec
	ready func(context.Context) error // one attempt; nil error means ready
	grace time.Duration               // between SIGTERM and SIGKILL
	limit time.Duration               // for becoming ready; 0 means startLimit
	// prepare, if any, comes before a start on request: it may change spec.
	prepare func(context.Context) error
	ports   []namedPort

	op sync.Mutex // held during a start or a stop

	mu    sync.Mutex // guards what follows
	state state
	proc  *process
}

type namedPort struct {
	use  string
	port int
}

// errEnded says that a component ended before it was ready.
var errEnded = errors.New("ended")

func (c *component) get() (state, *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.proc
}

func (c *component) set(s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

// start runs the component and returns when it is ready. The caller holds op.
// onExit is called when it ends after that without having been stopped.
func (c *component) start(ctx context.Context, sp *spawner, onExit func(*component, *process)) error {
	c.set(starting)
	p, err := sp.start(c.spec)
	if err != nil {
		c.set(failed)
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.mu.Lock()
	c.proc = p
	c.mu.Unlock()
	go func() {
		<-p.done
		c.ended(p, onExit)
	}()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(fmt.Errorf("%w: %s", errEnded, p.status))
		case <-ctx.Done():
		}
	}()
	if err := waitFor(ctx, cmp.Or(c.limit, startLimit), c.ready); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-p.done: // ended in this very moment; ended() saw it as still starting
		c.state = failed
		return fmt.Errorf("%s: %w: %s", c.name, errEnded, p.status)
	default:
		c.state = running
		return nil
	}
}

// ended records the end of a process, and reports it when it was running.
// While it was starting, start itself reports it.
func (c *component) ended(p *process, onExit func(*component, *process)) {
	c.mu.Lock()
	was := c.state
	if c.proc == p && was != stopped {
		c.state = failed
	}
	ours := c.proc == p
	c.mu.Unlock()
	if ours && was == running {
		onExit(c, p)
	}
}

// stop ends the component on purpose. The caller holds op, or is shutting down.
func (c *component) stop(grace time.Duration) {
	c.mu.Lock()
	c.state = stopped
	p := c.proc
	c.mu.Unlock()
	if p != nil {
		p.stop(grace)
	}
}
