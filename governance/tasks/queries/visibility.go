package queries

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// How Kueue is asked for the order of its queues. It sorts the whole queue for
// each answer, so that neither a page that many look at nor many pages ask more.
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

// windowOf is the part of a queue around a place, which counts from 1.
func windowOf(namespace, queue string, place int) window {
	return window{namespace, queue, max(0, (place-1)/windowStep*windowStep-windowStep)}
}

// pending keeps what Kueue said of the order of its queues. Its zero value is
// ready.
type visibilityCache struct {
	mu      sync.Mutex
	answers map[window]*answer
	asking  int
	retryAt time.Time // until when nothing is asked, since it failed
}

type answer struct {
	asked time.Time
	done  chan struct{} // closed once items are there
	items []visibility.PendingWorkload
	err   error
}

// look is a window as Kueue sees it, asked for now or lately; ok is false where
// it does not tell. changed is when the queue last changed.
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
		return true // it is being asked for
	}
	age := now.Sub(a.asked)
	return age < askEvery || age < answerKept && !changed.After(a.asked)
}

// begin asks, for whoever wants to know. p.mu is held.
func (p *visibilityCache) start(ctx context.Context, w window, now time.Time, ask func(context.Context, window) ([]visibility.PendingWorkload, error)) *answer {
	a := &answer{asked: now, done: make(chan struct{})}
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
