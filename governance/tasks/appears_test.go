package tasks

import (
	"context"
	"testing"
)

// Whoever waits for a task looks at it once for each change, and no more.
func TestWaitLooksAtChangesOnly(t *testing.T) {
	x, _ := newTestIndex()
	at := Address{Namespace: "ns", Kind: "job", Name: "a"}
	changed, looks := make(chan struct{}), 0
	seen := make(chan *Task, 1)
	go func() {
		seen <- x.wait(t.Context(), changed, at, func(t *Task) bool { looks++; return t != nil && t.Class == "high" })
	}()
	for _, class := range []string{"low", "low", "high"} {
		x.set(workload("ns", "a", class, 1, start), false)
		select {
		case changed <- struct{}{}:
		case found := <-seen: // the last one, before it was told of it
			seen <- found
		}
	}
	if found := <-seen; found == nil || found.Class != "high" || looks > 4 {
		t.Errorf("it saw %+v after %d looks", found, looks)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := x.wait(ctx, nil, at, func(*Task) bool { return false }); found == nil {
		t.Error("what it saw last is not told")
	}
}
