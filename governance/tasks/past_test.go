package tasks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// preemptedBy are the conditions of a Workload that lost its quota to another.
func preemptedBy(uid string, at time.Time) []metav1.Condition {
	c := condition("Evicted", true, "Preempted", at)
	c.Message = "Preempted to accommodate a workload (UID: " + uid + ", JobUID: x) due to prioritization in the ClusterQueue; preemptor path: /q; preemptee path: /q"
	return append(waits(at), condition("Admitted", false, "NoReservation", at), c, condition("Preempted", true, "InClusterQueue", at))
}

// A task that ran once leaves nothing to remember; of one that is preempted
// again and again the last steps are.
func TestWhatIsRemembered(t *testing.T) {
	x, c := newTestIndex()
	x.set(workload("ns", "quiet", "", 0, start, waits(start)...), false)
	x.set(workload("ns", "quiet", "", 0, start, runs(c.at)...), false)
	x.set(workload("ns", "quiet", "", 0, start, ends(start, c.at)...), false)
	if len(x.life.pasts) != 0 {
		t.Errorf("of a task that ran once there is %+v", x.life.pasts)
	}
	other := workload("ns", "other", "", 9, start, waits(start)...)
	other.UID = "abc-1"
	x.set(other, false)
	ran := int32(0)
	for i := range 30 {
		at := start.Add(time.Duration(i) * time.Hour)
		w := workload("ns", "busy", "", 0, start, runs(at)...)
		w.Status.AccumulatedPastExecutionTimeSeconds = &ran
		x.set(w, false)
		more := ran + 600
		w = workload("ns", "busy", "", 0, start, preemptedBy("abc-1", at.Add(10*time.Minute))...)
		w.Status.AccumulatedPastExecutionTimeSeconds = &more
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: int32(i) + 1}}}
		x.set(w, false)
		ran = more
	}
	x.drop(other)
	task := x.Find("ns", "Job", "busy", "")
	events := x.Timeline(task)
	losses := 0
	for _, e := range events {
		if e.lost() {
			losses++
			if e.Ran != 10*time.Minute && losses > 1 || // when the first began, is forgotten
				e.Preemptor == nil || e.Preemptor.Name != "other" || !e.PreemptorDeleted || e.Reason != "InClusterQueue" {
				t.Errorf("it was preempted by %+v after %s", e.Preemptor, e.Ran)
			}
		}
	}
	if n := len(x.life.pasts[groupKey{"ns", task.UID}].steps); n != pastLength || losses != pastLength/2+1 {
		t.Errorf("%d steps are remembered, with %d preemptions", n, losses)
	}
	v := viewer{index: x, sees: map[string]bool{"ns": true}}
	l, err := v.life(context.Background(), task)
	if err != nil || l.Omitted != int32(30-losses) {
		t.Errorf("%d of 30 preemptions are forgotten: %v", l.Omitted, err)
	}
	x.drop(workload("ns", "busy", "", 0, start))
	if len(x.life.pasts) != 0 {
		t.Errorf("of tasks that are gone there is %+v", x.life.pasts)
	}
}

// Who does not see another team is told neither who preempted their task, nor
// who lends to it, nor the names in events.
func TestOtherTeamsAreNotNamed(t *testing.T) {
	x, _ := newTestIndex()
	other := workload("secret-ns", "secret-task", "", 9, start, runs(start)...)
	other.UID = "abc-1"
	x.set(other, false)
	x.set(workload("mine", "task", "", 0, start, preemptedBy("abc-1", start)...), false)
	task := x.Find("mine", "Job", "task", "")
	member := viewer{
		index: x, sees: map[string]bool{"mine": true}, teams: map[string]string{"mine": "vision"},
		names: &hidden{names: map[string]bool{"secret-ns": true, "secret-queue": true}, own: map[string]bool{"q": true}},
	}
	for name, v := range map[string]viewer{"member": member, "admin": {index: x, teams: map[string]string{"secret-ns": "secret"}}} {
		l, err := v.life(context.Background(), task)
		if err != nil {
			t.Fatal(err)
		}
		queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "secret-queue", Labels: map[string]string{desired.LabelTeam: "secret"}}}
		n := v.notice(&corev1.Event{Message: "Preempted workload secret-ns/job-secret-task-1 (UID: 1) in ClusterQueue secret-queue; mine/job-task"})
		said := fmt.Sprint(n.Text, v.lender(queue))
		for _, e := range l.Timeline {
			if e.Preemptor != nil {
				said += e.Preemptor.Name + e.PreemptorTeam
			}
		}
		want := map[string]string{
			"member": "Preempted workload of another team (UID: 1) in ClusterQueue another team; mine/job-task",
			"admin":  "Preempted workload secret-ns/job-secret-task-1 (UID: 1) in ClusterQueue secret-queue; mine/job-tasksecretsecret-tasksecret",
		}[name]
		if said != want {
			t.Errorf("%s is told %q, want %q", name, said, want)
		}
	}
}

// Nor is who does not see another team told whose tasks are stopped for theirs,
// or hold what it needs, nor how many they are: only what all of them hold.
func TestHoldersOfOtherTeamsAreNotNamed(t *testing.T) {
	cell := quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
	x, _ := newTestIndex()
	x.set(holdsGPUs(workload("mine", "low", "", 0, start, runs(start)...), "own", 2), false)
	x.set(holdsGPUs(workload("secret-ns", "secret-task", "", 9, start, runs(start)...), "secret-queue", 3), false)
	x.set(holdsGPUs(workload("secret-ns", "secret-other", "", 9, start, runs(start)...), "secret-queue", 1), false)
	verdict := func(v viewer, gpus int64) *explain.Verdict {
		own := &explain.Queue{Name: "own", Cohort: "all", ReclaimWithinCohort: explain.AnyPriority, Flavors: []string{"a100"}, Resources: []string{"nvidia.com/gpu"}, Limits: map[quota.FlavorResource]explain.Limit{cell: {Nominal: 6}}}
		c := &explain.Cluster{Queue: own, Queues: map[string]*explain.Queue{"own": own, "secret-queue": {Name: "secret-queue", Team: "secret", Cohort: "all"}}, Flavors: map[string]explain.Flavor{"a100": {}}, PriorityClasses: []explain.PriorityClass{{Name: "high", Priority: 20}}}
		x.fill(c)
		return v.explain(explain.Task{Namespace: "mine", Priority: 5, PodSets: []explain.PodSet{{Name: "main", Count: 1, MinCount: 1, Requests: quota.Resources{"nvidia.com/gpu": gpus}}}}, c)
	}
	member := viewer{index: x, sees: map[string]bool{"mine": true}, teams: map[string]string{"mine": "vision"}, names: &hidden{own: map[string]bool{"own": true}}}
	admin := viewer{index: x, teams: map[string]string{"mine": "vision", "secret-ns": "secret"}}

	seen := verdict(admin, 4)
	if len(seen.TargetsInCohort) != 2 || !strings.HasPrefix(seen.TargetsInCohort[0].Name, "secret-") || seen.TargetsInCohort[0].Team != "secret" || seen.TargetsInCohort[0].Queue != "secret-queue" {
		t.Fatalf("an admin is told %+v", seen)
	}
	hidden := verdict(member, 4)
	if want := []explain.AdmittedWorkload{{Team: someoneElse, Usage: quota.FlavorResourceQuantities{cell: 4}}}; hidden.Constraint != explain.Preempting || !cmp.Equal(want, hidden.TargetsInCohort) {
		t.Errorf("of others a member is told %+v", hidden.TargetsInCohort)
	}
	if lent := seen.Shortage.Borrowers; len(lent) != 1 || lent[0].Team != "secret" || lent[0].Amount != 4 {
		t.Errorf("of who borrows, an admin is told %+v", lent)
	}
	if want := []explain.Borrower{{Team: someoneElse, Amount: 4}}; !cmp.Equal(want, hidden.Shortage.Borrowers) {
		t.Errorf("of who borrows, a member is told %+v", hidden.Shortage.Borrowers)
	}
	if own := hidden.Shortage.InQueue; len(own) != 1 || own[0].Name != "low" || own[0].Team != "vision" {
		t.Errorf("of their own team a member is told %+v", own)
	}
	if diff := cmp.Diff(seen, verdict(admin, 4)); diff != "" {
		t.Errorf("after a member, an admin is told something else: %s", diff)
	}
}

// A guaranteed part and its increments, as they come and go.
func TestSizesOfParts(t *testing.T) {
	x, c := newTestIndex()
	set := func(index *Index, uid string, pods int32, conditions ...metav1.Condition) {
		w := workload("ns", "train", "", 0, start, conditions...)
		w.Name, w.UID = uid, types.UID(uid)
		w.Spec.PodSets[0].Count = pods
		if conditions[0].Status == metav1.ConditionTrue {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &pods}}}
		}
		index.set(w, index != x)
	}
	at := func(minutes time.Duration) time.Time { return start.Add(minutes * time.Minute) }
	set(x, "a", 2, waits(start)...)
	set(x, "b", 3, waits(start)...)
	set(x, "a", 2, runs(at(1))...)
	set(x, "b", 3, runs(at(2))...)
	c.at = at(9) // a condition tells the time, not the clock
	set(x, "b", 3, preemptedBy("x", at(3))...)
	set(x, "b", 3, runs(at(4))...)
	set(x, "a", 2, ends(at(1), at(5))...)
	want := []Resize{{at(1), 0, 2, Started}, {at(2), 2, 5, Joined}, {at(3), 5, 2, LostTo}, {at(4), 2, 5, Joined}, {at(5), 5, 3, Ended}}
	if diff := cmp.Diff(want, x.Sizes(x.Find("ns", "Job", "train", ""))); diff != "" {
		t.Errorf("what was seen: %s", diff)
	}
	after, _ := newTestIndex() // a restart
	set(after, "a", 2, ends(at(1), at(5))...)
	set(after, "b", 3, runs(at(4))...)
	want = []Resize{{at(1), 0, 2, Started}, {at(4), 2, 5, Joined}, {at(5), 5, 3, Ended}}
	if diff := cmp.Diff(want, after.Sizes(after.Find("ns", "Job", "train", ""))); diff != "" {
		t.Errorf("what Kueue tells: %s", diff)
	}
}
