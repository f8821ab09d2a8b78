package queries

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks/taskstest"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

const soon = 10 * time.Second

// fakeAPI replaces Kueue's visibility API: it counts requests, and answers once
// hold is closed.
type fakeAPI struct {
	mu      sync.Mutex
	windows []window
	err     error
	hold    chan struct{} // nil answers immediately
}

func (a *fakeAPI) ask(ctx context.Context, w window) ([]visibility.PendingWorkload, error) {
	a.mu.Lock()
	a.windows = append(a.windows, w)
	a.mu.Unlock()
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return []visibility.PendingWorkload{{Priority: 1}}, a.err
}

func (a *fakeAPI) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.windows)
}

// Answers are reused until they are old, or the queue has changed.
func TestAnswersAreReused(t *testing.T) {
	var p visibilityCache
	a := &fakeAPI{}
	w := windowOf("ns", "main", 250)
	request := func(after, changed time.Duration) bool {
		_, ok := p.get(t.Context(), w, taskstest.Start.Add(after), taskstest.Start.Add(changed), a.ask)
		return ok
	}
	for _, step := range []struct {
		name           string
		after, changed time.Duration
		want           int
	}{
		{"the first request", 0, -time.Hour, 1},
		{"nothing changed", 9 * time.Second, -time.Hour, 1},
		{"the answer is old", 10 * time.Second, -time.Hour, 2},
		{"the queue changed a moment ago", 11 * time.Second, 11 * time.Second, 2},
		{"the queue changed", 12 * time.Second, 11 * time.Second, 3},
	} {
		if ok := request(step.after, step.changed); !ok || a.times() != step.want {
			t.Errorf("%s: got %d requests, want %d (answered: %t)", step.name, a.times(), step.want, ok)
		}
	}
	if w.offset != 100 {
		t.Errorf("the window around position 250 begins at %d, want 100", w.offset)
	}
}

// Concurrent readers of a window share one request.
func TestReadersShareARequest(t *testing.T) {
	var p visibilityCache
	a := &fakeAPI{hold: make(chan struct{})}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, ok := p.get(t.Context(), window{"ns", "main", 0}, taskstest.Start, taskstest.Start, a.ask); !ok {
				t.Error("a reader gets no answer")
			}
		})
	}
	// At most two requests run at a time.
	group.Go(func() { p.get(t.Context(), window{"ns", "main", 100}, taskstest.Start, taskstest.Start, a.ask) })
	clustertest.Eventually(t, soon, func(context.Context) error {
		if n := a.times(); n != 2 {
			return fmt.Errorf("got %d requests, want 2", n)
		}
		return nil
	})
	if _, ok := p.get(t.Context(), window{"ns", "main", 200}, taskstest.Start, taskstest.Start, a.ask); ok {
		t.Error("a third window is requested")
	}
	close(a.hold)
	group.Wait()
	if a.times() != 2 {
		t.Errorf("got %d requests, want 2", a.times())
	}
}

// After a failure Kueue is not requested for a while, unless it only did not have the
// queue yet.
func TestFailedRequests(t *testing.T) {
	for kind, want := range map[governance.Kind]int{governance.Forbidden: 1, governance.Unavailable: 1, governance.NotFound: 2} {
		var p visibilityCache
		a := &fakeAPI{err: &governance.Error{Kind: kind}}
		request := func(queue string, after time.Duration) {
			if _, ok := p.get(t.Context(), window{"ns", queue, 0}, taskstest.Start.Add(after), taskstest.Start, a.ask); ok {
				t.Errorf("%v: got an answer, want none", kind)
			}
			clustertest.Eventually(t, soon, func(context.Context) error { // readers get the answer before the cache records it
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.asking > 0 {
					return errors.New("the cache has not recorded the answer")
				}
				return nil
			})
		}
		request("main", 0)
		request("other", 5*time.Second)
		if a.times() != want {
			t.Errorf("after %v: got %d requests, want %d", kind, a.times(), want)
		}
		request("other", askAgain+time.Second)
		if a.times() != want+1 {
			t.Errorf("after %v: Kueue is not requested again", kind)
		}
	}
}
