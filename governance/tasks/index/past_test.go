package index

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The index keeps no past of a task that ran once, and the last events of a task that
// is preempted again and again.
func TestPastKeepsTheLastEvents(t *testing.T) {
	x, c := newTestIndex()
	x.SetWorkload(taskstest.Workload("ns", "quiet", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	x.SetWorkload(taskstest.Workload("ns", "quiet", "", 0, taskstest.Start, taskstest.Admitted(c.At)...), false)
	x.SetWorkload(taskstest.Workload("ns", "quiet", "", 0, taskstest.Start, taskstest.Finished(taskstest.Start, c.At)...), false)
	if len(x.life.pasts) != 0 {
		t.Errorf("the past of a task that ran once is %+v, want none", x.life.pasts)
	}
	other := taskstest.Workload("ns", "other", "", 9, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	other.UID = "abc-1"
	x.SetWorkload(other, false)
	ran := int32(0)
	for i := range 30 {
		at := taskstest.Start.Add(time.Duration(i) * time.Hour)
		w := taskstest.Workload("ns", "busy", "", 0, taskstest.Start, taskstest.Admitted(at)...)
		w.Status.AccumulatedPastExecutionTimeSeconds = &ran
		x.SetWorkload(w, false)
		more := ran + 600
		w = taskstest.Workload("ns", "busy", "", 0, taskstest.Start, taskstest.PreemptedBy("abc-1", at.Add(10*time.Minute))...)
		w.Status.AccumulatedPastExecutionTimeSeconds = &more
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: int32(i) + 1}}}
		x.SetWorkload(w, false)
		ran = more
	}
	x.DeleteWorkload(other)
	task := x.Find("ns", "Job", "busy", "")
	events := x.Timeline(task)
	losses := 0
	for _, e := range events {
		if e.Type.Lost() {
			losses++
			if e.Ran != 10*time.Minute && losses > 1 || // the start of the first run is not kept
				e.Preemptor == nil || e.Preemptor.Name != "other" || !e.PreemptorDeleted || e.Reason != "InClusterQueue" {
				t.Errorf("the task was preempted by %+v after %s", e.Preemptor, e.Ran)
			}
		}
	}
	if n := x.life.pasts[tasks.Key{Namespace: "ns", UID: task.UID}].Len(); n != 20 || losses != 11 {
		t.Errorf("got %d events with %d preemptions, want 20 and 11", n, losses)
	}
	x.DeleteWorkload(taskstest.Workload("ns", "busy", "", 0, taskstest.Start))
	if len(x.life.pasts) != 0 {
		t.Errorf("the index keeps the past of deleted tasks: %+v", x.life.pasts)
	}
}

// The sizes of a task follow the admissions and evictions of its parts.
func TestSizesOfParts(t *testing.T) {
	x, c := newTestIndex()
	set := func(target *Index, uid string, pods int32, conditions ...metav1.Condition) {
		w := taskstest.Workload("ns", "train", "", 0, taskstest.Start, conditions...)
		w.Name, w.UID = uid, types.UID(uid)
		w.Spec.PodSets[0].Count = pods
		if conditions[0].Status == metav1.ConditionTrue {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &pods}}}
		}
		target.SetWorkload(w, target != x)
	}
	at := func(minutes time.Duration) time.Time { return taskstest.Start.Add(minutes * time.Minute) }
	set(x, "a", 2, taskstest.Pending(taskstest.Start)...)
	set(x, "b", 3, taskstest.Pending(taskstest.Start)...)
	set(x, "a", 2, taskstest.Admitted(at(1))...)
	set(x, "b", 3, taskstest.Admitted(at(2))...)
	c.At = at(9) // times come from conditions, not from the clock
	set(x, "b", 3, taskstest.PreemptedBy("x", at(3))...)
	set(x, "b", 3, taskstest.Admitted(at(4))...)
	set(x, "a", 2, taskstest.Finished(at(1), at(5))...)
	want := []timeline.Resize{{At: at(1), From: 0, To: 2, Cause: timeline.Started}, {At: at(2), From: 2, To: 5, Cause: timeline.Joined}, {At: at(3), From: 5, To: 2, Cause: timeline.LostTo}, {At: at(4), From: 2, To: 5, Cause: timeline.Joined}, {At: at(5), From: 5, To: 3, Cause: timeline.Ended}}
	if diff := cmp.Diff(want, x.Sizes(x.Find("ns", "Job", "train", ""))); diff != "" {
		t.Errorf("sizes of observed changes (-want +got):\n%s", diff)
	}
	after, _ := newTestIndex() // a restart
	set(after, "a", 2, taskstest.Finished(at(1), at(5))...)
	set(after, "b", 3, taskstest.Admitted(at(4))...)
	want = []timeline.Resize{{At: at(1), From: 0, To: 2, Cause: timeline.Started}, {At: at(4), From: 2, To: 5, Cause: timeline.Joined}, {At: at(5), From: 5, To: 3, Cause: timeline.Ended}}
	if diff := cmp.Diff(want, after.Sizes(after.Find("ns", "Job", "train", ""))); diff != "" {
		t.Errorf("sizes after a restart (-want +got):\n%s", diff)
	}
}
