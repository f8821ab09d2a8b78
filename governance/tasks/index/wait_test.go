package index

import (
	"context"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever waits for a task looks at it once for each change, and no more.
func TestWaitLooksAtChangesOnly(t *testing.T) {
	x, _ := newTestIndex()
	at := tasks.Address{Namespace: "ns", Kind: "job", Name: "a"}
	changed, looks := make(chan struct{}), 0
	seen := make(chan *tasks.Task, 1)
	go func() {
		seen <- x.Wait(t.Context(), changed, at, func(t *tasks.Task) bool { looks++; return t != nil && t.PriorityClass == "high" })
	}()
	for _, class := range []string{"low", "low", "high"} {
		x.SetWorkload(taskstest.Workload("ns", "a", class, 1, taskstest.Start), false)
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
	if found := x.Wait(ctx, nil, at, func(*tasks.Task) bool { return false }); found == nil {
		t.Error("what it saw last is not told")
	}
}

// Only of a job that was just made is its task waited for.
func TestYoung(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	made := func(name string, ago time.Duration) *job {
		j := jobObject("ns", name, func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start.Add(-ago)) })
		x.setJob(j)
		return j
	}
	fresh := made("fresh", 0)
	made("old", time.Minute)
	at := tasks.Address{Namespace: "ns", Kind: "job", Name: "fresh"}
	other := at
	other.UID = "another"
	if !x.IsNew(at) || x.IsNew(other) {
		t.Errorf("a job of this moment is young: %t; one of another UID: %t", x.IsNew(at), x.IsNew(other))
	}
	for _, name := range []string{"old", "never-made"} {
		if x.IsNew(tasks.Address{Namespace: "ns", Kind: "job", Name: name}) {
			t.Errorf("%s is young", name)
		}
	}
	x.dropJob(fresh)
	if x.IsNew(at) {
		t.Error("a job that is gone is young")
	}
}
