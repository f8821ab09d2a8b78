package recorder

import (
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// TestTaskUsageOfEndedRuns gives a Workload that keeps its admission after its run: Kueue
// takes the quota at once.
func TestTaskUsageOfEndedRuns(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 21, 12, 0, second, 0, time.UTC))
	}
	is := func(name string, second int) metav1.Condition {
		return metav1.Condition{Type: name, Status: metav1.ConditionTrue, LastTransitionTime: at(second)}
	}
	for name, tc := range map[string]struct {
		active     bool
		conditions []metav1.Condition
		ended      time.Time
	}{
		"runs":                 {active: true},
		"deactivated":          {},
		"deactivated, evicted": {conditions: []metav1.Condition{is(kueue.WorkloadEvicted, 7)}, ended: at(7).Time},
		"evicted":              {active: true, conditions: []metav1.Condition{is(kueue.WorkloadEvicted, 7)}},
		"finished":             {active: true, conditions: []metav1.Condition{is(kueue.WorkloadFinished, 9)}, ended: at(9).Time},
	} {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{UID: "w"}, Spec: kueue.WorkloadSpec{Active: &tc.active}}
		w.Status.Conditions = append(tc.conditions, is(kueue.WorkloadQuotaReserved, 1))
		w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: new(int32(1)), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{catalog.GPU: "p5"},
			ResourceUsage: map[corev1.ResourceName]resource.Quantity{catalog.GPU: resource.MustParse("8")},
		}}}
		want := []history.TaskUsage{{WorkloadUID: "w", Began: at(1).Time, Ended: tc.ended, Amounts: map[history.PoolResource]int64{{Pool: "p5", Resource: catalog.GPU}: 8}}}
		if diff := cmp.Diff(want, taskUsage(timeline.Snapshot{Task: &tasks.Task{Parts: []*kueue.Workload{w}}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
