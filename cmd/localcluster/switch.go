package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// stopOne takes a component away on purpose.
func (s *supervisor) stopOne(name string) (string, error) {
	c := s.find(name)
	if c == nil {
		return "", s.unknown(name)
	}
	c.op.Lock()
	defer c.op.Unlock()
	if st, _ := c.get(); st == stopped {
		return name + " was already stopped", nil
	}
	s.mu.Lock()
	// Without etcd the API server is away just the same.
	if name == apiServer || name == etcdStore {
		s.apiAway = true
	}
	s.mu.Unlock()
	c.stop(c.grace)
	s.say("%s stopped on request", name)
	return name + " stopped", nil
}

// startOne brings a component back and returns when it is ready.
func (s *supervisor) startOne(ctx context.Context, name string) (string, error) {
	c := s.find(name)
	if c == nil {
		return "", s.unknown(name)
	}
	c.op.Lock()
	defer c.op.Unlock()
	if st, _ := c.get(); st == running {
		return name + " is already up", nil
	}
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := c.start(ctx, s.spawner, s.onExit); err != nil {
		return "", fmt.Errorf("%w; the end of its log:\n%s", err, logTail(c.spec.log))
	}
	s.say("%s started on request", name)
	if name == apiServer || name == etcdStore {
		s.apiReturned()
	}
	return name + " is up", nil
}

// apiReturned starts what ended meanwhile, once nothing of the store or the
// API server is missing any more.
func (s *supervisor) apiReturned() {
	for _, name := range []string{etcdStore, apiServer} {
		if st, _ := s.find(name).get(); st != running {
			if name == apiServer && st == waiting {
				go s.revive(s.find(name))
			}
			return
		}
	}
	s.mu.Lock()
	s.apiAway = false
	s.apiAwayTil = time.Now().Add(apiRecovery)
	s.mu.Unlock()
	for _, c := range s.list() {
		if st, _ := c.get(); st == waiting {
			go s.revive(c)
		}
	}
}

func (s *supervisor) unknown(name string) error {
	var names []string
	for _, c := range s.list() {
		names = append(names, c.name)
	}
	return fmt.Errorf("no component %q; there are %s", name, strings.Join(names, ", "))
}
