package queries

import (
	"context"
	"errors"
	"fmt"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"

	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

const soon = 10 * time.Second

// oracle counts what is asked of Kueue, and answers when told to.
type oracle struct {
	mu      sync.Mutex
	windows []window
	err     error
	hold    chan struct{} // nil answers at once
}

func (a *oracle) ask(ctx context.Context, w window) ([]visibility.PendingWorkload, error) {
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

func (a *oracle) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.windows)
}

func TestKueueIsAskedSeldom(t *testing.T) {
	var p visibilityCache
	a := &oracle{}
	w := windowOf("ns", "main", 250)
	look := func(after, changed time.Duration) bool {
		_, ok := p.get(t.Context(), w, taskstest.Start.Add(after), taskstest.Start.Add(changed), a.ask)
		return ok
	}
	for _, step := range []struct {
		name           string
		after, changed time.Duration
		want           int
	}{
		{"the first asks", 0, -time.Hour, 1},
		{"nothing changed", 9 * time.Second, -time.Hour, 1},
		{"it is old", 10 * time.Second, -time.Hour, 2},
		{"it changed, a moment ago", 11 * time.Second, 11 * time.Second, 2},
		{"it changed", 12 * time.Second, 11 * time.Second, 3},
	} {
		if ok := look(step.after, step.changed); !ok || a.times() != step.want {
			t.Errorf("%s: asked %d times, want %d (told: %t)", step.name, a.times(), step.want, ok)
		}
	}
	if w.offset != 100 {
		t.Errorf("the window around the 250th place begins at %d", w.offset)
	}
}

func TestManyAskOnce(t *testing.T) {
	var p visibilityCache
	a := &oracle{hold: make(chan struct{})}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, ok := p.get(t.Context(), window{"ns", "main", 0}, taskstest.Start, taskstest.Start, a.ask); !ok {
				t.Error("one is not told")
			}
		})
	}
	// More windows are not asked for at a time than two.
	group.Go(func() { p.get(t.Context(), window{"ns", "main", 100}, taskstest.Start, taskstest.Start, a.ask) })
	clustertest.Eventually(t, soon, func(context.Context) error {
		if n := a.times(); n != 2 {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	if _, ok := p.get(t.Context(), window{"ns", "main", 200}, taskstest.Start, taskstest.Start, a.ask); ok {
		t.Error("a third is asked for")
	}
	close(a.hold)
	group.Wait()
	if a.times() != 2 {
		t.Errorf("it was asked %d times", a.times())
	}
}

// What fails is let alone for a while, except that a queue is new to Kueue.
func TestKueueDoesNotAnswer(t *testing.T) {
	for kind, want := range map[governance.Kind]int{governance.Forbidden: 1, governance.Unavailable: 1, governance.NotFound: 2} {
		var p visibilityCache
		a := &oracle{err: &governance.Error{Kind: kind}}
		look := func(queue string, after time.Duration) {
			if _, ok := p.get(t.Context(), window{"ns", queue, 0}, taskstest.Start.Add(after), taskstest.Start, a.ask); ok {
				t.Errorf("%v is taken for an answer", kind)
			}
			clustertest.Eventually(t, soon, func(context.Context) error { // the answer is told before it is noted
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.asking > 0 {
					return errors.New("it is not noted")
				}
				return nil
			})
		}
		look("main", 0)
		look("other", 5*time.Second)
		if a.times() != want {
			t.Errorf("after %v it was asked %d times, want %d", kind, a.times(), want)
		}
		look("other", askAgain+time.Second)
		if a.times() != want+1 {
			t.Errorf("after %v it is not asked again", kind)
		}
	}
}
