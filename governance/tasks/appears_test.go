package tasks

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever waits for a task looks at it once for each change, and no more.
func TestWaitLooksAtChangesOnly(t *testing.T) {
	x, _ := newTestIndex()
	at := Address{Namespace: "ns", Kind: "job", Name: "a"}
	changed, looks := make(chan struct{}), 0
	seen := make(chan *Task, 1)
	go func() {
		seen <- x.wait(t.Context(), changed, at, func(t *Task) bool { looks++; return t != nil && t.PriorityClass == "high" })
	}()
	for _, class := range []string{"low", "low", "high"} {
		x.set(workload("ns", "a", class, 1, start), false)
		select {
		case changed <- struct{}{}:
		case found := <-seen: // the last one, before it was told of it
			seen <- found
		}
	}
	if found := <-seen; found == nil || found.PriorityClass != "high" || looks > 4 {
		t.Errorf("it saw %+v after %d looks", found, looks)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := x.wait(ctx, nil, at, func(*Task) bool { return false }); found == nil {
		t.Error("what it saw last is not told")
	}
}

// Only of a job that was just made is its task waited for.
func TestYoung(t *testing.T) {
	x, _ := newTestIndex()
	x.told()
	made := func(name string, ago time.Duration) *job {
		j := jobObject("ns", name, func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(start.Add(-ago)) })
		x.setJob(j)
		return j
	}
	fresh := made("fresh", 0)
	made("old", time.Minute)
	at := Address{Namespace: "ns", Kind: "job", Name: "fresh"}
	other := at
	other.UID = "another"
	if !x.young(at) || x.young(other) {
		t.Errorf("a job of this moment is young: %t; one of another UID: %t", x.young(at), x.young(other))
	}
	for _, name := range []string{"old", "never-made"} {
		if x.young(Address{Namespace: "ns", Kind: "job", Name: name}) {
			t.Errorf("%s is young", name)
		}
	}
	x.dropJob(fresh)
	if x.young(at) {
		t.Error("a job that is gone is young")
	}
}
