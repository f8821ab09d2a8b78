package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
)

// Notifier signals subscribers that something changed, without what. Each
// subscriber reads again what it shows. A subscriber that has not received the
// last signal gets only one. A Notifier is safe for concurrent use, and its
// zero value is ready.
type Notifier struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
	count     atomic.Uint64
}

// Count returns the number of signals. Data that is read after Count includes
// all of these changes.
func (c *Notifier) Count() uint64 { return c.count.Load() }

// Subscribe returns a channel that has a value if something changed since the
// last receive, until ctx ends.
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

// Notify signals all subscribers.
func (c *Notifier) Notify() {
	c.count.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for listener := range c.listeners {
		select {
		case listener <- struct{}{}:
		default: // the pending signal covers this change too
		}
	}
}

// Listener signals changes until ctx ends.
type Listener interface {
	Subscribe(ctx context.Context) <-chan struct{}
}

// Either subscribes to the signals of two listeners.
func Either(ctx context.Context, a, b Listener) <-chan struct{} {
	either, first, second := make(chan struct{}, 1), a.Subscribe(ctx), b.Subscribe(ctx)
	go func() {
		for {
			select {
			case <-first:
			case <-second:
			case <-ctx.Done():
				return
			}
			select {
			case either <- struct{}{}:
			default: // the pending signal covers this one too
			}
		}
	}()
	return either
}

// chainHandlers returns a handler that calls first, which may be nil, and then
// tell. It skips an object for which first panics: the process would end for it again at
// each start, and all objects behind it wait.
func chainHandlers(log *slog.Logger, first toolscache.ResourceEventHandler, tell func()) toolscache.ResourceEventHandler {
	if first == nil {
		first = toolscache.ResourceEventHandlerFuncs{}
	}
	each := func(object any, handle func()) {
		defer tell()
		defer func() {
			if cause := recover(); cause != nil {
				name, _ := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
				log.Error("panic; the object is skipped", "type", fmt.Sprintf("%T", object), "object", name, "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
			}
		}()
		handle()
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { each(object, func() { first.OnAdd(object, initial) }) },
		UpdateFunc: func(before, after any) { each(after, func() { first.OnUpdate(before, after) }) },
		DeleteFunc: func(object any) { each(object, func() { first.OnDelete(object) }) },
	}
}
