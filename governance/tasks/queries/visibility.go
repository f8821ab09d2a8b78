package queries

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// Limits of reading Kueue's visibility API. Kueue sorts the whole queue for each
// answer, so that neither many readers of a page nor many pages may cause more
// reads.
const (
	windowStep  = 100              // windows begin at multiples of it
	windowSize  = 3 * windowStep   // with one step before and behind
	askLimit    = time.Second      // a page waits no longer
	askEvery    = 2 * time.Second  // of one window at most
	answerKept  = 10 * time.Second // while nothing changed in the queue
	askAgain    = 30 * time.Second // after it failed
	asksAtOnce  = 2
	windowsKept = 1000
)

// window is a part of a LocalQueue.
type window struct {
	namespace, queue string
	offset           int // from 0
}

// windowOf returns the part of a queue around a position, which counts from 1.
func windowOf(namespace, queue string, place int) window {
	return window{namespace, queue, max(0, (place-1)/windowStep*windowStep-windowStep)}
}

// visibilityCache keeps Kueue's answers about the order of its queues. Its zero
// value is ready.
type visibilityCache struct {
	mu      sync.Mutex
	answers map[window]*answer
	asking  int
	retryAt time.Time // no reads until then, after a failure
}

type answer struct {
	requestedAt time.Time
	done        chan struct{} // closed once items or err is set
	items       []visibility.PendingWorkload
	err         error
}

// pendingByKueue returns the Workloads of a task's LocalQueue around a position in Kueue's
// order; ok is false if Kueue does not answer.
func (s *Service) pendingByKueue(ctx context.Context, v viewer, t *tasks.Task, place int) (items []visibility.PendingWorkload, ok bool) {
	return s.visibility.get(ctx, windowOf(t.Namespace, t.Queue, place), v.index.Now(), v.index.QueueChanged(t), func(ctx context.Context, w window) ([]visibility.PendingWorkload, error) {
		return s.Cluster.PendingWorkloads(ctx, w.namespace, w.queue, w.offset, windowSize)
	})
}

// get returns a window from Kueue, read now or lately; ok is false if there is no
// answer. changed is when the queue last changed.
func (p *visibilityCache) get(ctx context.Context, w window, now, changed time.Time, ask func(context.Context, window) ([]visibility.PendingWorkload, error)) (items []visibility.PendingWorkload, ok bool) {
	p.mu.Lock()
	a := p.answers[w]
	if a == nil || !a.fresh(now, changed) {
		if now.Before(p.retryAt) || p.asking >= asksAtOnce {
			p.mu.Unlock()
			return nil, false
		}
		a = p.start(context.WithoutCancel(ctx), w, now, ask)
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.items, a.err == nil
	case <-ctx.Done():
		return nil, false
	}
}

func (a *answer) fresh(now, changed time.Time) bool {
	select {
	case <-a.done:
	default:
		return true // it is being read
	}
	age := now.Sub(a.requestedAt)
	return age < askEvery || age < answerKept && !changed.After(a.requestedAt)
}

// start reads a window in the background, for all its readers. p.mu is locked.
func (p *visibilityCache) start(ctx context.Context, w window, now time.Time, ask func(context.Context, window) ([]visibility.PendingWorkload, error)) *answer {
	a := &answer{requestedAt: now, done: make(chan struct{})}
	if p.answers == nil || len(p.answers) >= windowsKept {
		p.answers = map[window]*answer{}
	}
	p.answers[w] = a
	p.asking++
	go func() {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		a.items, a.err = ask(ctx, w)
		close(a.done)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking--
		if a.err != nil && governance.KindOf(a.err) != governance.NotFound { // a queue may be new to Kueue
			p.retryAt = now.Add(askAgain)
		}
	}()
	return a
}
