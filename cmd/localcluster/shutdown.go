package main

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// shutdownTiers is the order of ending: who writes goes before who stores. The
// graces add up to less than five seconds; the cluster is disposable, so a
// component that takes longer is killed.
var shutdownTiers = []struct {
	names []string
	grace time.Duration
}{
	{[]string{consoleName, providerName}, 1500 * time.Millisecond},
	{[]string{kwokName, kueueName, schedulerName, controllerManager}, 1200 * time.Millisecond},
	{[]string{apiServer}, 1200 * time.Millisecond},
	{[]string{etcdStore}, 700 * time.Millisecond},
}

// shutdown ends every component and returns when none is left.
func (s *supervisor) shutdown() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	for _, tier := range shutdownTiers {
		var wg sync.WaitGroup
		for _, c := range s.list() {
			if slices.Contains(tier.names, c.name) {
				wg.Go(func() { c.stop(tier.grace) })
			}
		}
		wg.Wait()
	}
	// A start that was under way may have spawned a process after its tier.
	for _, c := range s.list() {
		c.op.Lock()
		c.stop(0)
		c.op.Unlock()
	}
}

// killAll is for the second Ctrl-C.
func (s *supervisor) killAll() {
	for _, c := range s.list() {
		if _, p := c.get(); p != nil {
			_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
		}
	}
}
