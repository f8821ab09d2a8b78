package recorder

import (
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A preemption loop that is recorded while it goes on, and again by a console that
// started later, has all preemptions by Kueue's count and counts in no average.
func TestPreemptionLoopIsRecordedOnce(t *testing.T) {
	ctx := t.Context()
	store, err := history.Open(ctx, filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	start := time.Date(2026, 11, 21, 22, 59, 30, 0, time.UTC) // the loop crosses the end of an hour
	now := start
	x := index.New(func() time.Time { return now })
	controls := true
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "vision", Name: "job-train", UID: "w1", CreationTimestamp: metav1.NewTime(start.Add(-2 * time.Hour)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "train", UID: "j1", Controller: &controls}},
	}}
	w.Spec.PriorityClassRef = &kueue.PriorityClassRef{Name: "low", Kind: kueue.WorkloadPriorityClassKind}
	set := func(at time.Time, states map[string]bool) {
		w = w.DeepCopy()
		for name, yes := range states {
			c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(at), Reason: "Admitted"}
			if yes {
				c.Status = metav1.ConditionTrue
			}
			if name == kueue.WorkloadEvicted && yes {
				c.Reason, c.Message = kueue.WorkloadEvictedByPreemption, "Preempted to accommodate a workload (UID: abc-9, JobUID: x) due to prioritization in the ClusterQueue"
			}
			conditions := w.Status.Conditions[:0]
			for _, old := range w.Status.Conditions {
				if old.Type != name {
					conditions = append(conditions, old)
				}
			}
			w.Status.Conditions = append(conditions, c)
		}
		x.Handler().OnUpdate(nil, w)
	}
	admit := func(at time.Time) {
		set(at, map[string]bool{kueue.WorkloadQuotaReserved: true, kueue.WorkloadAdmitted: true, kueue.WorkloadEvicted: false})
	}
	var since, last time.Time
	record := func(loops ...timeline.Loop) {
		found := x.Find("vision", "job", "train", "")
		snapshot := timeline.Snapshot{Task: found, Events: x.Timeline(found), Loops: loops}
		if err := store.RecordTasks(ctx, []history.Record{newRecord(snapshot, taskstest.Teams("vision", "vision"))}); err != nil {
			t.Fatal(err)
		}
	}
	loop := func(runs int32) timeline.Loop {
		return timeline.Loop{Namespace: "vision", WorkloadUID: w.UID, Since: since, Last: last, Runs: runs}
	}
	admit(start.Add(-time.Hour))
	record()
	for n := range int32(63) {
		if n > 0 {
			now = now.Add(330 * time.Millisecond)
			admit(now.Truncate(time.Second))
			now = now.Add(400 * time.Millisecond)
		}
		if last = now.Truncate(time.Second); n == 0 {
			since = last
		}
		w = w.DeepCopy()
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, Count: n + 1}}}
		set(last, map[string]bool{kueue.WorkloadEvicted: true, kueue.WorkloadPreempted: true})
		set(last, map[string]bool{kueue.WorkloadQuotaReserved: false, kueue.WorkloadAdmitted: false})
		if record(); n == 20 || n > 50 { // the loop is detected later than it begins
			record(loop(n))
		}
	}
	x = index.New(func() time.Time { return now })
	x.Handler().OnAdd(w, true)
	record()

	sums, err := store.ClassStats(ctx, nil, start.Add(-24*time.Hour), start.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	hour := time.Hour.Milliseconds()
	want := []history.ClassStats{{Class: "low", Waits: 1, WaitMillis: hour, LongestWait: time.Hour, Runs: 1, RunMillis: hour, LongestRun: time.Hour, LoopRuns: 62}}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Error(diff)
	}
	_, steps, _, err := store.Timeline(ctx, "j1")
	if err != nil {
		t.Fatal(err)
	}
	next := int32(1)
	for _, s := range steps {
		if s.Type != string(timeline.Preempted) {
			continue
		}
		if s.FirstPreemption != next || s.LastPreemption < s.FirstPreemption || s.Preemptor != (history.TaskRef{UID: "abc-9"}) {
			t.Errorf("preemption at %s is %+v, want number %d", s.At, s, next)
		}
		next = s.LastPreemption + 1
	}
	if next != 64 {
		t.Errorf("%d preemptions are recorded, want 63", next-1)
	}
}
