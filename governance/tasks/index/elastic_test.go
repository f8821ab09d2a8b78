package index

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// elasticLabels are the labels of a part of the ElasticJob train.
func elasticLabels(increment string) map[string]string {
	return map[string]string{v1alpha1.LabelElasticJob: "train", v1alpha1.LabelElasticJobUID: "e-1", v1alpha1.LabelElasticIncrement: increment}
}

// part returns a Workload of a Job as the cache of the console has it. Labels are those
// of its pods.
func part(namespace, job, class string, priority int32, labels map[string]string, conditions ...metav1.Condition) *kueue.Workload {
	w := taskstest.Workload(namespace, job, class, priority, taskstest.Start, conditions...)
	w.Spec.PodSets[0].Template.Labels = labels
	s := new(slimmer)
	s.slim(w)
	s.slim(w) // as an informer does with objects of the first list
	return w
}

func base(conditions ...metav1.Condition) *kueue.Workload {
	return part("a", "train-base", "high-priority", 90, elasticLabels("0"), conditions...)
}

func growth(conditions ...metav1.Condition) *kueue.Workload {
	return part("a", "train-grow-1", "kuota-growth", -1_000_000, elasticLabels("1"), conditions...)
}

// The base decides what an ElasticJob is: neither growth that still uses quota, nor growth
// that is preempted changes its state or its priority class, or is a wait or a run of it.
func TestElasticJobIsOneTaskOfItsBase(t *testing.T) {
	x, clock := newTestIndex()
	x.Record()
	x.workloadsSynced()
	x.setElasticJob(&v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "e-1", CreationTimestamp: metav1.NewTime(taskstest.Start)}})
	at := func(minutes int) time.Time { return taskstest.Start.Add(time.Duration(minutes) * time.Minute) }
	preempted := func(w *kueue.Workload, now time.Time) *kueue.Workload {
		w.Status.Conditions = append(taskstest.Pending(now),
			metav1.Condition{Type: kueue.WorkloadEvicted, Status: "True", Reason: kueue.WorkloadEvictedByPreemption, LastTransitionTime: metav1.NewTime(now)},
			metav1.Condition{Type: kueue.WorkloadPreempted, Status: "True", Reason: kueue.InCohortReclamationReason, LastTransitionTime: metav1.NewTime(now)})
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, Count: 1}}}
		return w
	}
	withQuota := func(w *kueue.Workload) *kueue.Workload { return taskstest.UsingGPUs(w, "q", 1) }
	type figures struct {
		State       tasks.State
		Class       string
		Preemptions int32
		Events      int // growth has none
	}
	for i, step := range []struct {
		name string
		do   func()
		want figures
	}{
		{"waits", func() { x.SetWorkload(base(taskstest.Pending(at(0))...), false) }, figures{tasks.Pending, "high-priority", 0, 1}},
		{"runs", func() { x.SetWorkload(withQuota(base(taskstest.Admitted(at(1))...)), false) }, figures{tasks.Running, "high-priority", 0, 2}},
		{"grows", func() { x.SetWorkload(withQuota(growth(taskstest.Admitted(at(2))...)), false) }, figures{tasks.Running, "high-priority", 0, 2}},
		{"growth is preempted", func() { x.SetWorkload(preempted(growth(), at(3)), false) }, figures{tasks.Running, "high-priority", 0, 2}},
		{"growth is deleted", func() { x.DeleteWorkload(growth()) }, figures{tasks.Running, "high-priority", 0, 2}},
		{"grows again", func() { x.SetWorkload(withQuota(growth(taskstest.Admitted(at(5))...)), false) }, figures{tasks.Running, "high-priority", 0, 2}},
		{"its minimum is preempted before its growth ends", func() { x.SetWorkload(preempted(base(), at(6)), false) }, figures{tasks.Preempted, "high-priority", 1, 3}},
		{"its base is deleted before its growth", func() { x.DeleteWorkload(base()) }, figures{tasks.Stopping, "high-priority", 0, 2}},
	} {
		clock.At = at(i)
		step.do()
		all := x.Query(Query{}, nil)
		if all.Total != 1 {
			t.Fatalf("%s: %d tasks, want 1", step.name, all.Total)
		}
		now := x.Find("a", v1alpha1.ElasticJobKind, "train", "")
		if now == nil {
			t.Fatalf("%s: there is no ElasticJob train", step.name)
		}
		if diff := cmp.Diff(step.want, figures{now.State, now.PriorityClass, now.Preemptions, len(x.Timeline(now))}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	x.dropElasticJob(&v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "e-1"}})
	x.DeleteWorkload(growth())
	taken := x.TakeChanged(10)
	if len(taken) != 1 || taken[0].DeletedAt.IsZero() || taken[0].Kind != v1alpha1.ElasticJobKind || taken[0].PriorityClass != "high-priority" {
		t.Fatalf("recorded are %+v, want one deleted ElasticJob of its class", taken)
	}
	rows, _ := x.Classes(nil, 0)
	for _, row := range rows {
		if row.PriorityClass != "high-priority" || row.Waits != 1 || row.Runs != 1 {
			t.Errorf("averages of %q are over %d waits and %d runs, want 1 and 1 of high-priority only", row.PriorityClass, row.Waits, row.Runs)
		}
	}
}

// An ElasticJob whose base has no Workload, such as one of an unknown priority class, is
// a task, also after it ended.
func TestElasticJobWithoutAWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ElasticJob)
		want   bool
	}{
		"created":  {func(*v1alpha1.ElasticJob) {}, true},
		"finished": {func(e *v1alpha1.ElasticJob) { e.Status.State = v1alpha1.ElasticFailed }, true},
		"deleted":  {func(e *v1alpha1.ElasticJob) { e.DeletionTimestamp = new(metav1.Now()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.workloadsSynced()
			e := &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "e-1", CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour)), Labels: map[string]string{tasks.QueueLabel: "main", desired.PriorityClassLabel: "none"}}}
			tc.change(e)
			x.setElasticJob(e)
			x.setJob(jobObject("a", "train-base", func(j *batchv1.Job) { j.Labels = elasticLabels("0"); j.Labels[tasks.QueueLabel] = "main" }))
			found := x.Find("a", v1alpha1.ElasticJobKind, "train", "")
			if (found != nil) != tc.want || x.Len() > 1 {
				t.Fatalf("%d tasks, among them the ElasticJob %+v", x.Len(), found)
			}
			if found != nil && (!found.NoWorkload || found.PriorityClass != "none") {
				t.Errorf("the task is %+v", found)
			}
			x.dropElasticJob(e)
			if x.Len() != 0 {
				t.Error("the task exists after its ElasticJob is deleted")
			}
		})
	}
}

// Jobs with the labels of an ElasticJob are parts of it only in its namespace and under
// the name that the controller gives.
func TestForgedLabelsOfAnElasticJob(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, job, increment, kind string
		wantKind                        string
	}{
		"another namespace":     {"b", "train-grow-7", "7", "Job", v1alpha1.ElasticJobKind},
		"another name":          {"a", "mine", "7", "Job", "Job"},
		"another number":        {"a", "train-grow-7", "8", "Job", "Job"},
		"another kind":          {"a", "train-grow-7", "7", "JobSet", "JobSet"},
		"the name of the base":  {"a", "train-base", "1", "Job", "Job"},
		"a number below that":   {"a", "train-grow--1", "-1", "Job", "Job"},
		"a number that is none": {"a", "train-grow-x", "x", "Job", "Job"},
		"no number":             {"a", "train-grow-7", "", "Job", "Job"},
		"a number with a space": {"a", "train-grow-7", "7 ", "Job", "Job"},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.SetWorkload(taskstest.UsingGPUs(base(taskstest.Admitted(taskstest.Start)...), "q", 1), false)
			w := taskstest.Workload(tc.namespace, tc.job, "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...)
			w.UID, w.OwnerReferences[0].Kind = "forged", tc.kind
			w.Spec.PodSets[0].Template.Labels = elasticLabels(tc.increment)
			new(slimmer).slim(w)
			x.SetWorkload(taskstest.UsingGPUs(w, "q", 5), false)
			if tc.kind == "Job" {
				x.setJob(jobObject(tc.namespace, tc.job, func(j *batchv1.Job) { j.UID = "forged-job"; j.Labels = elasticLabels(tc.increment) }))
			}
			x.SetPod(podObject(x, tc.namespace, "forged-pod", "Job", "forged-job"))
			real, forged := x.Find("a", v1alpha1.ElasticJobKind, "train", ""), x.ByWorkload(types.UID("forged"))
			if real == nil || forged == nil || real == forged || len(real.Parts) != 1 || forged.Kind != tc.wantKind || forged.Namespace != tc.namespace {
				t.Fatalf("the tasks are %+v and %+v", real, forged)
			}
			if pods, _ := x.Pods(real); len(pods) > 0 {
				t.Errorf("the ElasticJob has the pod %s", pods[0].Name)
			}
		})
	}
}
