package index

import (
	"kuota.dev/kuota/governance/tasks/taskstest"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// jobObject is a batch Job with a queue.
func jobObject(namespace, name string, change ...func(*batchv1.Job)) *job {
	o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("j-" + namespace + name), CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour)), Labels: map[string]string{queueLabel: "main"},
	}}
	for _, c := range change {
		c(o)
	}
	return slimJob(slimJob(o, "Job"), "Job").(*job) // as a watch does with what was there before
}

// podObject is a pod; owner is a kind and a UID, empty for none.
func podObject(x *Index, namespace, name, kind, owner string, change ...func(*corev1.Pod)) *Pod {
	yes := true
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("p-" + namespace + name), CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour))}}
	if kind != "" {
		o.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}
	}
	o.Status.Phase = corev1.PodRunning
	for _, c := range change {
		c(o)
	}
	p, _ := x.slimPod(o)
	p, _ = x.slimPod(p)
	return p.(*Pod)
}

func owned(kind, uid string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", UID: types.UID(uid), Controller: new(true)}}
	}
}

// Which jobs are tasks though they have no Workload.
func TestJobsWithoutAWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		job      *job
		governed bool
		is       bool
	}{
		"with a queue":                       {jobObject("a", "j"), false, true},
		"without one, nowhere":               {jobObject("a", "j", func(j *batchv1.Job) { j.Labels = nil }), false, false},
		"without one, in a team's":           {jobObject("a", "j", func(j *batchv1.Job) { j.Labels = nil }), true, true},
		"of a CronJob":                       {jobObject("a", "j", owned("CronJob", "c")), false, true},
		"of a workflow that Kueue knows not": {jobObject("a", "j", owned("Workflow", "w")), false, true},
		"a part of a JobSet":                 {jobObject("a", "j", owned("JobSet", "s")), true, false},
		"ended": {jobObject("a", "j", func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		}), true, false},
		"being deleted":                       {jobObject("a", "j", func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: taskstest.Start} }), true, false},
		"submitted this moment":               {jobObject("a", "j", func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start) }), false, false},
		"submitted a while ago, without pods": {jobObject("a", "j", func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start.Add(-5 * time.Second)) }), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.govern("a", tc.governed)
			x.setJob(tc.job)
			if x.Len() != 0 {
				t.Error("it is a task before all Workloads are known")
			}
			x.workloadsSynced()
			if is := x.Len() == 1; is != tc.is {
				t.Errorf("it is a task: %t", is)
			}
			w := taskstest.Workload("a", "j", "", 0, taskstest.Start.Add(-time.Hour), taskstest.Pending(taskstest.Start)...)
			w.OwnerReferences[0].UID = tc.job.UID
			x.SetWorkload(w, false)
			if task := x.Find("a", "job", "j", ""); task == nil || task.NoWorkload || x.Len() != 1 {
				t.Errorf("with its Workload it is %+v, of %d", task, x.Len())
			}
			x.DeleteWorkload(w)
			if is := x.Len() == 1; is != tc.is {
				t.Errorf("without its Workload it is a task again: %t", is)
			}
			x.dropJob(tc.job)
			if x.Len() != 0 || len(x.jobs)+len(x.jobsIn)+len(x.children) != 0 {
				t.Error("something stays")
			}
		})
	}
}

// A job that was there before the console is not counted as if it had just begun,
// whichever of the two comes first.
func TestJobsBeforeTheirWorkloads(t *testing.T) {
	x, _ := newTestIndex()
	x.setJob(jobObject("a", "j"))
	x.SetWorkload(taskstest.Workload("a", "j", "", 0, taskstest.Start.Add(-2*time.Hour), taskstest.Admitted(taskstest.Start.Add(-time.Hour))...), true)
	x.workloadsSynced()
	rows, _ := x.Classes(func(string) bool { return true }, 0)
	if len(rows) != 1 || rows[0].Waits != 0 || rows[0].Running != 1 {
		t.Errorf("there are %+v", rows)
	}
}

// Whose pods are whose.
func TestPodsOfTasks(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.SetWorkload(taskstest.Workload("a", "train", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...), false) // of the Job j-atrain
	x.setJob(jobObject("a", "part", owned("Job", "j-atrain")))
	x.SetPod(podObject(x, "a", "worker", "Job", "j-atrain"))
	x.SetPod(podObject(x, "a", "deeper", "Job", "j-apart"))
	x.SetPod(podObject(x, "a", "executor", "Pod", "p-aworker"))
	x.SetPod(podObject(x, "b", "foreign", "Job", "j-atrain"))        // says that it is of another team's job
	x.setJob(jobObject("b", "foreign", owned("Job", "j-atrain")))    // so does this
	x.SetPod(podObject(x, "b", "of-it", "Job", "j-bforeign"))        // with its pod
	x.SetPod(podObject(x, "group/x", "odd", "Job", "group/another")) // no such namespace, but who knows
	task := x.Find("a", "job", "train", "")
	pods, count := x.Pods(task)
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if len(names) != 3 || names[0] != "a/deeper" || names[1] != "a/executor" || names[2] != "a/worker" || count.Total != 3 {
		t.Errorf("it has %q, %+v", names, count)
	}
}

// A pod of nobody's is a task; adopted, it is none, and when it is gone nothing
// stays.
func TestAdoptedPod(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.govern("a", true)
	alone := podObject(x, "a", "pod", "", "")
	x.SetPod(alone)
	if task := x.Find("a", "pod", "pod", ""); task == nil || !task.NoWorkload || task.State != tasks.Running {
		t.Fatalf("it is %+v", task)
	}
	x.SetPod(podObject(x, "a", "pod", "ReplicaSet", "rs"))
	if x.Len() != 0 {
		t.Error("an adopted pod is still a task")
	}
	x.deletePod(alone)
	if x.Len() != 0 || len(x.pods)+len(x.podsBy)+len(x.jobs) != 0 {
		t.Error("something stays")
	}
}

// Orders that nobody asks for any more do not keep what is gone.
func TestOrdersForget(t *testing.T) {
	x, _ := newTestIndex()
	w := taskstest.Workload("a", "j", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	x.SetWorkload(w, false)
	x.Query(Query{Sort: ByName}, nil)
	for range 5000 {
		x.SetWorkload(w, false)
	}
	if o := x.orders[ByName]; len(o.sorted)+len(o.removed) > 3*maxRemoved {
		t.Errorf("%d and %d are kept", len(o.sorted), len(o.removed))
	}
}

// A StatefulSet's Workload has its pods as owners too, once they are there.
func TestOwnerAmongPods(t *testing.T) {
	w := &kueue.Workload{}
	w.Name, w.UID = "statefulset-store", "w"
	pod := metav1.OwnerReference{Kind: "Pod", Name: "store-0", UID: "p"}
	for name, tc := range map[string]struct {
		owners    []metav1.OwnerReference
		kind, uid string
	}{
		"nobody":           {nil, "Workload", "w"},
		"pods":             {[]metav1.OwnerReference{pod, pod}, "PodGroup", "w"},
		"a StatefulSet":    {[]metav1.OwnerReference{{Kind: "StatefulSet", Name: "store", UID: "s"}}, "StatefulSet", "s"},
		"it and its pods":  {[]metav1.OwnerReference{{Kind: "StatefulSet", Name: "store", UID: "s"}, pod, pod}, "StatefulSet", "s"},
		"its pods, and it": {[]metav1.OwnerReference{pod, {Kind: "StatefulSet", Name: "store", UID: "s"}}, "StatefulSet", "s"},
	} {
		t.Run(name, func(t *testing.T) {
			w.OwnerReferences = tc.owners
			if kind, _, uid := tasks.OwnerOf(w); kind != tc.kind || uid != tc.uid {
				t.Errorf("it is a %s, %s", kind, uid)
			}
		})
	}
}

// Slices of one second are in the order in which they took each other's place.
func TestSlicesOfOneSecond(t *testing.T) {
	var list []*kueue.Workload
	for i, name := range []string{"c", "a", "b"} {
		w := taskstest.Workload("ns", name, "", 0, taskstest.Start)
		w.Name, w.UID, w.Annotations = name, types.UID(name), map[string]string{tasks.SliceNameAnnotation: "c"}
		w.Spec.PodSets[0].Count = int32(i + 1)
		if i > 0 {
			w.Annotations[tasks.SliceReplacementAnnotation] = "ns/" + list[i-1].Name
			list[i-1].Status.Conditions = []metav1.Condition{taskstest.Condition("Finished", true, kueue.WorkloadSliceReplaced, taskstest.Start)}
		}
		list = append(list, w)
	}
	if task := tasks.FromWorkloads(list, nil); task.Main.Name != "b" || task.Size.Wanted != 3 {
		t.Errorf("it is %s with %+v", task.Main.Name, task.Size)
	}
}
