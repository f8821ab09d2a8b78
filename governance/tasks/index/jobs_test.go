package index

import (
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// jobObject is a batch Job with a queue.
func jobObject(namespace, name string, change ...func(*batchv1.Job)) *job {
	o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("j-" + namespace + name), CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour)), Labels: map[string]string{tasks.QueueLabel: "main"},
	}}
	for _, c := range change {
		c(o)
	}
	return slimJob(slimJob(o, "Job"), "Job").(*job) // twice, as an informer does with objects of the first list
}

// podObject is a pod; owner is a kind and a UID, empty for none.
func podObject(x *Index, namespace, name, kind, owner string, change ...func(*corev1.Pod)) *Pod {
	yes := true
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("p-" + namespace + name), CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour))}}
	if kind != "" {
		o.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}
	}
	o.Status.Phase, o.Spec.NodeName = corev1.PodRunning, "node"
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

// complete sets a condition of a Job that started five minutes earlier.
func complete(condition batchv1.JobConditionType, at time.Time) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.StartTime = &metav1.Time{Time: at.Add(-5 * time.Minute)}
		j.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: "True", LastTransitionTime: metav1.NewTime(at), Message: "Job has reached the specified backoff limit"}}
	}
}

// A job without a Workload is a task if it has a queue, or if its namespace is
// governed and it has not ended, unless it was just created or is a part of another job.
func TestJobsWithoutAWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		job      *job
		governed bool
		wantTask bool
	}{
		"with a queue":    {jobObject("a", "j"), false, true},
		"without a queue": {jobObject("a", "j", func(j *batchv1.Job) { j.Labels = nil }), false, false},
		"without a queue, in a governed namespace": {jobObject("a", "j", func(j *batchv1.Job) { j.Labels = nil }), true, true},
		"of a CronJob":                         {jobObject("a", "j", owned("CronJob", "c")), false, true},
		"of a kind that Kueue does not manage": {jobObject("a", "j", owned("Workflow", "w")), false, true},
		"a part of a JobSet":                   {jobObject("a", "j", owned("JobSet", "s")), true, false},
		"finished":                             {jobObject("a", "j", complete(batchv1.JobComplete, taskstest.Start)), true, true},
		"finished, without a queue":            {jobObject("a", "j", complete(batchv1.JobComplete, taskstest.Start), func(j *batchv1.Job) { j.Labels = nil }), true, false},
		"being deleted":                        {jobObject("a", "j", func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: taskstest.Start} }), true, false},
		"submitted now":                        {jobObject("a", "j", func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start) }), false, false},
		"submitted 5 s ago, without pods":      {jobObject("a", "j", func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(taskstest.Start.Add(-5 * time.Second)) }), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.govern("a", tc.governed)
			x.setJob(tc.job)
			if x.Len() != 0 {
				t.Error("the job is a task before the Workloads have synced")
			}
			x.workloadsSynced()
			if is := x.Len() == 1; is != tc.wantTask {
				t.Errorf("the job is a task: %t, want %t", is, tc.wantTask)
			}
			w := taskstest.Workload("a", "j", "", 0, taskstest.Start.Add(-time.Hour), taskstest.Pending(taskstest.Start)...)
			w.OwnerReferences[0].UID = tc.job.UID
			x.SetWorkload(w, false)
			if task := x.Find("a", "job", "j", ""); task == nil || task.NoWorkload || x.Len() != 1 {
				t.Errorf("with its Workload, got %d tasks, and %+v", x.Len(), task)
			}
			x.DeleteWorkload(w)
			if is, want := x.Len() == 1, tc.wantTask || name == "submitted now"; is != want {
				t.Errorf("after the deletion of its Workload the job is a task: %t, want %t", is, want)
			}
			x.dropJob(tc.job)
			if x.Len() != 0 || len(x.jobs)+len(x.jobsIn)+len(x.children) != 0 {
				t.Error("the index still has entries of deleted objects")
			}
		})
	}
}

// A task is starting, not running, while fewer of its pods have a node than it starts
// with, and if it wants no pods.
func TestPodsWithoutANode(t *testing.T) {
	x, _ := newTestIndex()
	w := taskstest.Workload("a", "j", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...)
	w.Spec.PodSets[0].Count = 2
	w.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: new(int32(2))}}}
	state := func(want tasks.State, when string) {
		t.Helper()
		if got := x.Find("a", "job", "j", "").State; got != want {
			t.Errorf("%s it is %s, want %s", when, got, want)
		}
	}
	pod := func(name, node string) *Pod {
		return podObject(x, "a", name, "Job", "j-aj", func(p *corev1.Pod) {
			if p.Spec.NodeName = node; node == "" {
				p.Status.Phase = corev1.PodPending
			}
		})
	}
	x.SetWorkload(w, true)
	x.SetPod(pod("p-0", "n"))
	x.SetPod(pod("p-1", ""))
	state(tasks.Running, "before all pods are known")
	x.podsSynced()
	state(tasks.Starting, "with a pod without a node")
	if x.CountNotReady() != 0 {
		t.Error("Kueue is said to wait for its pods")
	}
	x.SetPod(pod("p-1", "n"))
	state(tasks.Running, "with nodes for both")
	x.deletePod(pod("p-0", "n"))
	x.SetPod(pod("p-2", ""))
	state(tasks.Starting, "with a new pod without a node")
	x.deletePod(pod("p-2", ""))
	state(tasks.Running, "after that pod was deleted")
	few := w.DeepCopy()
	few.Spec.PodSets[0].MinCount = new(int32(1))
	x.SetWorkload(few, false)
	x.SetPod(pod("p-3", ""))
	state(tasks.Running, "with as many as it starts with")
	none := w.DeepCopy()
	none.Spec.PodSets[0].Count, none.Status.Admission.PodSetAssignments[0].Count = 0, new(int32(0))
	x.SetWorkload(none, false)
	state(tasks.Starting, "without pods")
}

// Growth that asks for a node lacks none: the node need not exist yet.
func TestPodThatAsksForANode(t *testing.T) {
	for class, want := range map[string]bool{v1alpha1.ProvisionClass: false, "other": true, "": true} {
		if got := New(time.Now).PodOf(&corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: class}}).Unscheduled(); got != want {
			t.Errorf("a pod of class %q without a node is unscheduled: %t, want %t", class, got, want)
		}
	}
}

// A job that existed before the console started is not counted as a new one, whether
// the index receives the job or its Workload first.
func TestJobsBeforeTheirWorkloads(t *testing.T) {
	x, _ := newTestIndex()
	x.setJob(jobObject("a", "j"))
	x.SetWorkload(taskstest.Workload("a", "j", "", 0, taskstest.Start.Add(-2*time.Hour), taskstest.Admitted(taskstest.Start.Add(-time.Hour))...), true)
	x.workloadsSynced()
	rows, _ := x.Classes(nil, 0)
	if len(rows) != 1 || rows[0].Waits != 0 || rows[0].Running != 1 {
		t.Errorf("got %+v, want one running task and no waits", rows)
	}
}

// A task has the pods of its job, of its job's jobs and of their pods, all in its own
// namespace.
func TestPodsOfTasks(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.SetWorkload(taskstest.Workload("a", "train", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...), false) // of the Job j-atrain
	x.setJob(jobObject("a", "part", owned("Job", "j-atrain")))
	x.SetPod(podObject(x, "a", "worker", "Job", "j-atrain"))
	x.SetPod(podObject(x, "a", "deeper", "Job", "j-apart"))
	x.SetPod(podObject(x, "a", "executor", "Pod", "p-aworker"))
	x.SetPod(podObject(x, "b", "foreign", "Job", "j-atrain"))        // its owner is the UID of another team's job
	x.setJob(jobObject("b", "foreign", owned("Job", "j-atrain")))    // a job with such an owner
	x.SetPod(podObject(x, "b", "of-it", "Job", "j-bforeign"))        // and its pod
	x.SetPod(podObject(x, "group/x", "odd", "Job", "group/another")) // a namespace that the index also uses as a key
	task := x.Find("a", "job", "train", "")
	pods, count := x.Pods(task)
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if len(names) != 3 || names[0] != "a/deeper" || names[1] != "a/executor" || names[2] != "a/worker" || count.Total != 3 {
		t.Errorf("got the pods %q, %+v, want a/deeper, a/executor and a/worker", names, count)
	}
}

// A pod without an owner is a task. Adopted, it is none. Deleted, it leaves no entry.
func TestAdoptedPod(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.govern("a", true)
	alone := podObject(x, "a", "pod", "", "")
	x.SetPod(alone)
	if task := x.Find("a", "pod", "pod", ""); task == nil || !task.NoWorkload || task.State != tasks.Running {
		t.Fatalf("the pod is %+v, want a running task without a Workload", task)
	}
	x.SetPod(podObject(x, "a", "pod", "ReplicaSet", "rs"))
	if x.Len() != 0 {
		t.Error("an adopted pod is still a task")
	}
	x.deletePod(alone)
	if x.Len() != 0 || len(x.pods)+len(x.podsBy)+len(x.jobs) != 0 {
		t.Error("the index still has entries of deleted objects")
	}
}

// A sort order that no query uses any more drops replaced tasks.
func TestUnusedOrdersStaySmall(t *testing.T) {
	x, _ := newTestIndex()
	w := taskstest.Workload("a", "j", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	x.SetWorkload(w, false)
	x.Query(Query{Sort: ByName}, nil)
	for range 5000 {
		x.SetWorkload(w, false)
	}
	if o := x.orders[ByName]; len(o.sorted)+len(o.removed) > 3*maxRemoved {
		t.Errorf("the order has %d sorted and %d removed tasks", len(o.sorted), len(o.removed))
	}
}

// A StatefulSet's Workload has its pods as owners too, once they exist.
func TestOwnerAmongPods(t *testing.T) {
	w := &kueue.Workload{}
	w.Name, w.UID = "statefulset-store", "w"
	pod := metav1.OwnerReference{Kind: "Pod", Name: "store-0", UID: "p"}
	for name, tc := range map[string]struct {
		owners            []metav1.OwnerReference
		wantKind, wantUID string
	}{
		"no owner":                   {nil, "Workload", "w"},
		"pods":                       {[]metav1.OwnerReference{pod, pod}, "PodGroup", "w"},
		"a StatefulSet":              {[]metav1.OwnerReference{{Kind: "StatefulSet", Name: "store", UID: "s"}}, "StatefulSet", "s"},
		"a StatefulSet and its pods": {[]metav1.OwnerReference{{Kind: "StatefulSet", Name: "store", UID: "s"}, pod, pod}, "StatefulSet", "s"},
		"its pods and a StatefulSet": {[]metav1.OwnerReference{pod, {Kind: "StatefulSet", Name: "store", UID: "s"}}, "StatefulSet", "s"},
	} {
		t.Run(name, func(t *testing.T) {
			w.OwnerReferences = tc.owners
			if kind, _, uid := tasks.OwnerOf(w); kind != tc.wantKind || uid != tc.wantUID {
				t.Errorf("got owner %s %s, want %s %s", kind, uid, tc.wantKind, tc.wantUID)
			}
		})
	}
}

// Slices that were created in one second are ordered by which slice each replaces.
func TestSlicesCreatedInOneSecond(t *testing.T) {
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
		t.Errorf("the main slice is %s with %+v, want b with 3 pods", task.Main.Name, task.Size)
	}
}

// Who submitted a task, and how many of its completions succeeded, is known from its job, whichever of both the index sees first, and
// after the job ended.
func TestSubmittedBy(t *testing.T) {
	for _, jobFirst := range []bool{true, false} {
		x := New(time.Now)
		o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "1", Annotations: map[string]string{v1alpha1.AnnotationSubmittedBy: "ada"}, Labels: map[string]string{"sweep": "lr", "team": "x", tasks.QueueLabel: "main"}}}
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "job-train", UID: "2", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "1", Controller: new(true)}}}}
		steps := []func(){func() { x.setJob(slimJob(o, "Job").(*job)) }, func() { x.SetWorkload(w, false) }}
		if !jobFirst {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			step()
		}
		check := func(when string) {
			t.Helper()
			if got := x.Find("a", "Job", "train", ""); got == nil || got.SubmittedBy != "ada" || got.Labels != "sweep=lr team=x" {
				t.Errorf("%s, job first %v: got %+v", when, jobFirst, got)
			}
		}
		check("at first")
		o.Spec.Completions, o.Status.Succeeded = new(int32(6)), 4
		x.setJob(slimJob(o, "Job").(*job))
		if got := x.Find("a", "Job", "train", "").Completed; got != (tasks.Completions{Done: 4, Of: 6}) {
			t.Errorf("got %+v completions, want 4 of 6", got)
		}
		o.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		x.setJob(slimJob(o, "Job").(*job))
		check("after the job ended")
		if q := (Query{SubmittedBy: "ada"}); !q.matchesButState(x.Find("a", "Job", "train", "")) || (Query{SubmittedBy: "bob"}).matchesButState(x.Find("a", "Job", "train", "")) {
			t.Error("the query for tasks of one person selects others")
		}
		x.Find("a", "Job", "train", "").PriorityClass = "training-priority"
		for text, want := range map[string]bool{"training": true, "sweep=lr": true, "ada": true, "sweep=x": false, "main": false} {
			if got := (Query{Text: text}).matchesButState(x.Find("a", "Job", "train", "")); got != want {
				t.Errorf("a search for %q: got %t, want %t", text, got, want)
			}
		}
		x.dropJob(slimJob(o, "Job").(*job))
		if len(x.facts) != 0 {
			t.Errorf("after the job was deleted, %v is left", x.facts)
		}
		check("until the Workload is deleted")
	}
}
