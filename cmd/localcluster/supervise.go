package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// apiRecovery is how long after the API server's return another component may
// still end because of its absence.
const apiRecovery = 30 * time.Second

// supervisor keeps components running, and ends all when one ends by itself.
type supervisor struct {
	layout  layout
	spawner *spawner
	ports   *portPool // here, so that the reservations last as long as we do
	say     func(format string, args ...any)
	fatal   chan error // the first unexpected end

	kueue    *kueueUnit
	etcd     *clientv3.Client // nil unless resettable, as is baseline
	baseline store            // etcd when the instance became ready

	mu         sync.Mutex
	components []*component // in the order of starting
	apiAwayTil time.Time    // until then an end is put down to the API server's absence
	apiAway    bool
	closing    bool
}

func newSupervisor(l layout, say func(string, ...any)) *supervisor {
	return &supervisor{layout: l, spawner: newSpawner(), ports: newPortPool(), say: say, fatal: make(chan error, 1)}
}

// run starts a component for the first time.
func (s *supervisor) run(ctx context.Context, c *component) error {
	c.spec.log = s.layout.log(c.name)
	c.op.Lock()
	defer c.op.Unlock()
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return context.Canceled
	}
	s.components = append(s.components, c)
	s.mu.Unlock()
	if err := c.start(ctx, s.spawner, s.onExit); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w; the end of %s:\n%s", err, c.spec.log, logTail(c.spec.log))
	}
	return nil
}

// onExit decides what the end of a running component means.
func (s *supervisor) onExit(c *component, p *process) {
	s.mu.Lock()
	closing := s.closing
	forgiven := c.name != apiServer && (s.apiAway || time.Now().Before(s.apiAwayTil))
	away := s.apiAway
	if forgiven && !closing {
		c.set(waiting) // under the lock, so that the return of the API server sees it
	}
	s.mu.Unlock()
	if closing {
		return
	}
	if forgiven {
		s.say("%s ended (%s) while the API server was away; it is started again with it", c.name, p.status)
		if !away {
			go s.revive(c)
		}
		return
	}
	err := fmt.Errorf("%s (pid %d) ended unexpectedly: %s; the end of %s:\n%s",
		c.name, p.pid(), p.status, c.spec.log, logTail(c.spec.log))
	s.fail(err)
}

func (s *supervisor) fail(err error) {
	select {
	case s.fatal <- err:
	default: // only the first one matters, the others follow from it
	}
}

// revive starts a component that ended because the API server was away.
func (s *supervisor) revive(c *component) {
	c.op.Lock()
	defer c.op.Unlock()
	if st, _ := c.get(); st != waiting {
		return
	}
	if err := c.start(context.Background(), s.spawner, s.onExit); err != nil {
		s.fail(fmt.Errorf("start %s again: %w; the end of its log:\n%s", c.name, err, logTail(c.spec.log)))
		return
	}
	s.say("%s is up again", c.name)
}

// find returns the component of that name.
func (s *supervisor) find(name string) *component {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.components, func(c *component) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.components[i]
}

func (s *supervisor) list() []*component {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.components)
}
