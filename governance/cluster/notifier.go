package cluster

import (
	"context"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
)

// Changes tells listeners that something changed, without saying what: each
// looks again at what it shows. A listener that is busy is told once.
type Notifier struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
	count     atomic.Uint64
}

// Count is how often something changed. Whoever takes it, and then looks, has
// seen all of those.
func (c *Notifier) Count() uint64 { return c.count.Load() }

// Listen returns a channel that has a value whenever something changed since
// the last one was taken, until ctx ends.
func (c *Notifier) Subscribe(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	c.mu.Lock()
	if c.listeners == nil {
		c.listeners = map[chan struct{}]struct{}{}
	}
	c.listeners[changed] = struct{}{}
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, changed)
	})
	return changed
}

// Notify tells all listeners.
func (c *Notifier) Notify() {
	c.count.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for listener := range c.listeners {
		select {
		case listener <- struct{}{}:
		default: // it has not looked since the last change, and will see this one too
		}
	}
}

// then is a handler that has first handle an event, where there is one, and
// tells of it afterwards.
func chainHandlers(first toolscache.ResourceEventHandler, tell func()) toolscache.ResourceEventHandler {
	if first == nil {
		first = toolscache.ResourceEventHandlerFuncs{}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { first.OnAdd(object, initial); tell() },
		UpdateFunc: func(before, after any) { first.OnUpdate(before, after); tell() },
		DeleteFunc: func(object any) { first.OnDelete(object); tell() },
	}
}

// handler notifies of every event of an informer.
func (c *Notifier) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.Notify() },
		UpdateFunc: func(any, any) { c.Notify() },
		DeleteFunc: func(any) { c.Notify() },
	}
}
