package index

import (
	"context"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Wait checks the task once for each change, and no more.
func TestWaitChecksOncePerChange(t *testing.T) {
	x, _ := newTestIndex()
	at := tasks.Address{Namespace: "ns", Kind: "job", Name: "a"}
	changed, checks := make(chan struct{}), 0
	seen := make(chan *tasks.Task, 1)
	go func() {
		seen <- x.Wait(t.Context(), changed, at, func(t *tasks.Task, _ bool) bool { checks++; return t != nil && t.PriorityClass == "high" })
	}()
	for _, class := range []string{"low", "low", "high"} {
		x.SetWorkload(taskstest.Workload("ns", "a", class, 1, taskstest.Start), false)
		select {
		case changed <- struct{}{}:
		case found := <-seen: // Wait has returned before it received the last change
			seen <- found
		}
	}
	if found := <-seen; found == nil || found.PriorityClass != "high" || checks > 4 {
		t.Errorf("got %+v after %d checks, want the priority class high after at most 4", found, checks)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := x.Wait(ctx, nil, at, func(*tasks.Task, bool) bool { return false }); found == nil {
		t.Error("canceled, Wait does not return the task")
	}
}

// Only a job that was created a moment ago is new.
func TestIsNew(t *testing.T) {
	x, _ := newTestIndex()
	isNew := func(at tasks.Address) bool { _, is := x.FindOrNew(at); return is }
	x.workloadsSynced()
	create := func(name string, ago time.Duration) *job {
		j := jobObject("ns", name, func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start.Add(-ago)) })
		x.setJob(j)
		return j
	}
	fresh := create("fresh", 0)
	create("old", time.Minute)
	at := tasks.Address{Namespace: "ns", Kind: "job", Name: "fresh"}
	other := at
	other.UID = "another"
	if !x.Arriving() {
		t.Error("a job that was just created is not arriving")
	}
	if !isNew(at) || isNew(other) {
		t.Errorf("a job that was just created is new: %t; one with another UID: %t", isNew(at), isNew(other))
	}
	for _, name := range []string{"old", "never-created"} {
		if isNew(tasks.Address{Namespace: "ns", Kind: "job", Name: name}) {
			t.Errorf("%s is new", name)
		}
	}
	x.dropJob(fresh)
	if isNew(at) || x.Arriving() {
		t.Error("a deleted job is new")
	}
}

// A task is behind those with the higher priority, and then those that were created
// before, of all LocalQueues that lead to its ClusterQueue.
func TestFirstWaiting(t *testing.T) {
	x, _ := newTestIndex()
	preempts := metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: kueue.WorkloadQuotaReservedReasonWaitingForPreemptedWorkloads}
	x.SetWorkload(taskstest.Workload("a", "first", "", 9, taskstest.Start), false)
	x.SetWorkload(taskstest.Workload("a", "second", "", 5, taskstest.Start.Add(time.Second), preempts), false)
	x.SetWorkload(taskstest.Workload("b", "higher", "", 6, taskstest.Start, preempts), false)
	both := []QueueKey{{"a", "main"}, {"b", "main"}, {"c", "none"}}
	for queues, want := range map[int]string{0: "", 1: "second", 3: "higher"} {
		got := ""
		if first := x.FirstWaiting(both[:queues], preempts.Reason); first != nil {
			got = first.Name
		}
		if got != want {
			t.Errorf("of %v: %q, want %q", both[:queues], got, want)
		}
	}
}

func TestPositionAcross(t *testing.T) {
	x, _ := newTestIndex()
	x.SetWorkload(taskstest.Workload("a", "old", "", 5, taskstest.Start), false)
	x.SetWorkload(taskstest.Workload("b", "new", "", 5, taskstest.Start.Add(time.Second)), false)
	x.SetWorkload(taskstest.Workload("b", "high", "", 6, taskstest.Start.Add(time.Minute)), false)
	both := []QueueKey{{"a", "main"}, {"b", "main"}}
	for _, tc := range []struct {
		namespace, name string
		queues          []QueueKey
		want            bool
	}{{"a", "old", both, true}, {"a", "old", both[:1], false}, {"b", "new", both[:1], true}, {"b", "new", both[1:], true}, {"b", "high", both, false}} {
		place, _ := x.PositionAcross(x.Find(tc.namespace, "Job", tc.name, ""), tc.queues)
		if got := place > 1; got != tc.want {
			t.Errorf("%s/%s in %v: got %t, want %t", tc.namespace, tc.name, tc.queues, got, tc.want)
		}
	}
}
