package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// serveObject is the Deployment serve, as the watch of its metadata has it.
func serveObject(change ...func(*metav1.PartialObjectMetadata)) *job {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: "serve", UID: "d-1", CreationTimestamp: metav1.NewTime(taskstest.Start.Add(-time.Hour)), Labels: map[string]string{tasks.QueueLabel: "main"},
	}}
	for _, c := range change {
		c(o)
	}
	return slimJob(slimJob(o, tasks.DeploymentKind), tasks.DeploymentKind).(*job)
}

// had is the annotation of a stopped Deployment.
func had(replicas string) func(*metav1.PartialObjectMetadata) {
	return func(o *metav1.PartialObjectMetadata) {
		o.Annotations = map[string]string{v1alpha1.AnnotationStoppedReplicas: replicas}
	}
}

// replica is a pod of the Deployment serve.
func replica(x *Index, name string, change ...func(*corev1.Pod)) *Pod {
	of := func(o *corev1.Pod) {
		o.OwnerReferences[0].UID = "rs-1"
		o.Labels = map[string]string{"pod-template-hash": "7d9f8b", tasks.QueueLabel: "main", managedLabel: "true"}
	}
	return podObject(x, "a", name, "ReplicaSet", "serve-7d9f8b", append([]func(*corev1.Pod){of}, change...)...)
}

// workloadOf is the Workload that Kueue creates for a pod.
func workloadOf(name string, conditions ...metav1.Condition) *kueue.Workload {
	w := taskstest.Workload("a", name, "", 0, taskstest.Start, conditions...)
	w.Name = "pod-" + name
	w.OwnerReferences[0].Kind, w.OwnerReferences[0].UID = "Pod", types.UID("p-a"+name)
	return w
}

func gpu(w *kueue.Workload) *kueue.Workload { return taskstest.UsingGPUs(w, "q", 1) }

// A Deployment is one task, in whatever order the index receives it, its pods and
// their Workloads.
func TestDeploymentIsOneTask(t *testing.T) {
	type step struct {
		name string
		do   func(x *Index)
	}
	steps := []step{{"deployment", func(x *Index) { x.setJob(serveObject()) }}}
	for i := range 5 {
		name := fmt.Sprintf("serve-7d9f8b-%d", i)
		w := workloadOf(name, taskstest.Pending(taskstest.Start)...)
		if i < 3 {
			w = gpu(workloadOf(name, taskstest.Admitted(taskstest.Start)...))
		}
		steps = append(steps, step{"pod", func(x *Index) { x.SetPod(replica(x, name)) }}, step{"workload", func(x *Index) { x.SetWorkload(w, true) }})
	}
	order := func(kinds ...string) []step {
		sorted := slices.Clone(steps)
		slices.SortStableFunc(sorted, func(a, b step) int { return slices.Index(kinds, a.name) - slices.Index(kinds, b.name) })
		return sorted
	}
	for name, sorted := range map[string][]step{
		"as they are created": steps,
		"Workloads first":     order("workload", "pod", "deployment"),
		"pods first":          order("pod", "workload", "deployment"),
		"Deployments first":   order("deployment", "workload", "pod"),
		"pods last":           order("workload", "deployment", "pod"),
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.Record()
			x.govern("a", true)
			for _, s := range sorted {
				s.do(x)
			}
			x.podsSynced()
			x.workloadsSynced()
			found := x.Find("a", "deployment", "serve", "")
			if x.Len() != 1 || found == nil {
				t.Fatalf("%d tasks, among them the Deployment %+v", x.Len(), found)
			}
			admitted, wanted := found.Replicas()
			type figures struct {
				State            tasks.State
				Admitted, Wanted int64
				GPUs             resources.Amount
				AdmittedParts    int
				Submitted        time.Time
			}
			want := figures{tasks.Running, 3, 5, 3, 3, taskstest.Start.Add(-time.Hour)}
			if diff := cmp.Diff(want, figures{found.State, admitted, wanted, found.Usage["nvidia.com/gpu"], len(found.AdmittedWorkloads), found.Submitted}); diff != "" {
				t.Errorf("the task (-want +got):\n%s", diff)
			}
			if pods, count := x.Pods(found); len(pods) != 5 || count.Total != 5 {
				t.Errorf("it has %d pods, want 5", len(pods))
			}
			if next := found.PendingIncrement(); next == nil || next.State != tasks.Pending {
				t.Errorf("its pending increment is %+v", next)
			}
			rows, _ := x.Classes(nil, 0)
			if len(rows) != 1 || rows[0].Running != 1 || rows[0].Waits != 0 {
				t.Errorf("got the figures %+v, want one running task and no wait since the start", rows)
			}
			for _, s := range x.TakeChanged(100) {
				if s.Kind != tasks.DeploymentKind {
					t.Errorf("recorded is the %s %s", s.Kind, s.Name)
				}
			}
			if owner := x.PodOwners()[PodName{"a", "serve-7d9f8b-4"}]; owner != found {
				t.Errorf("a pod belongs to %+v", owner)
			}
		})
	}
}

// Replicas come and go, and the task remains: when one is preempted, replaced, or fails.
func TestReplicasAreReplaced(t *testing.T) {
	x, clock := newTestIndex()
	x.Record()
	x.workloadsSynced()
	x.podsSynced()
	at := func(minutes int) time.Time { return taskstest.Start.Add(time.Duration(minutes) * time.Minute) }
	add := func(name string, w *kueue.Workload) { x.SetPod(replica(x, name)); x.SetWorkload(w, false) }
	terminates := func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: clock.At} }
	preempted := func(name string, hasQuota bool) *kueue.Workload {
		w := workloadOf(name, taskstest.PreemptedBy("other", clock.At)...)
		if hasQuota {
			w = gpu(workloadOf(name, append(taskstest.Admitted(at(1)), taskstest.Condition("Evicted", true, "Preempted", clock.At))...))
		}
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, Count: 1}}}
		return w
	}
	type figures struct {
		State            tasks.State
		Admitted, Wanted int64
		Preemptions      int32
		AdmittedAt       time.Time
	}
	for i, step := range []struct {
		name string
		do   func()
		want figures
	}{
		{"waits", func() {
			x.setJob(serveObject())
			add("s-1", workloadOf("s-1", taskstest.Pending(clock.At)...))
			add("s-2", workloadOf("s-2", taskstest.Pending(clock.At)...))
		}, figures{tasks.Pending, 0, 2, 0, time.Time{}}},
		{"one replica starts", func() { add("s-1", gpu(workloadOf("s-1", taskstest.Admitted(clock.At)...))) }, figures{tasks.Running, 1, 2, 0, at(1)}},
		{"the other one too", func() { add("s-2", gpu(workloadOf("s-2", taskstest.Admitted(clock.At)...))) }, figures{tasks.Running, 2, 2, 0, at(1)}},
		{"the first is being preempted", func() { x.SetWorkload(preempted("s-1", true), false) }, figures{tasks.Running, 2, 2, 1, at(1)}},
		{"its pod ends", func() {
			x.SetPod(replica(x, "s-1", terminates))
			x.SetWorkload(preempted("s-1", false), false)
			add("s-3", workloadOf("s-3", taskstest.Pending(clock.At)...))
		}, figures{tasks.Running, 1, 2, 1, at(1)}},
		{"and is deleted", func() {
			x.deletePod(replica(x, "s-1"))
			w := preempted("s-1", false)
			w.Status.Conditions = append(w.Status.Conditions, taskstest.Condition("Finished", true, kueue.WorkloadFinishedReasonOwnerNotFound, clock.At))
			x.SetWorkload(w, false)
		}, figures{tasks.Running, 1, 2, 1, at(1)}},
		{"its Workload is deleted", func() { x.DeleteWorkload(workloadOf("s-1")) }, figures{tasks.Running, 1, 2, 1, at(1)}},
		{"a node ends the pod of the second, after a third started", func() {
			add("s-4", gpu(workloadOf("s-4", taskstest.Admitted(clock.At)...)))
			x.SetPod(replica(x, "s-2", func(o *corev1.Pod) { o.Status.Phase = corev1.PodFailed }))
			x.SetWorkload(workloadOf("s-2", append(taskstest.Admitted(at(2)), taskstest.Condition("Finished", true, kueue.WorkloadFinishedReasonFailed, clock.At))...), false)
		}, figures{tasks.Running, 1, 2, 1, at(1)}},
	} {
		clock.At = at(i)
		step.do()
		now := x.Find("a", "deployment", "serve", "")
		if now == nil || x.Len() != 1 {
			t.Fatalf("%s: %d tasks, among them the Deployment %+v", step.name, x.Len(), now)
		}
		admitted, wanted := now.Replicas()
		if diff := cmp.Diff(step.want, figures{now.State, admitted, wanted, now.Preemptions, now.AdmittedAt}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	rows, _ := x.Classes(nil, 0)
	if len(rows) != 1 || rows[0].Waits != 1 || rows[0].Runs != 0 {
		t.Errorf("got the figures %+v, want one wait and no run: it still runs", rows)
	}
}

// A Deployment without pods is stopped. An annotation has how many replicas it had.
func TestStoppedDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		deployment   *job
		want         bool
		wantReplicas int32
	}{
		"stopped":         {serveObject(had("5")), true, 5},
		"scaled to 0":     {serveObject(), true, 0},
		"less than none":  {serveObject(had("-5")), true, 0},
		"no number":       {serveObject(had("99999999999")), true, 0},
		"without a queue": {serveObject(func(o *metav1.PartialObjectMetadata) { o.Labels = nil }), false, 0},
		"deleted":         {serveObject(func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: taskstest.Start} }), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.govern("a", true)
			x.workloadsSynced()
			x.podsSynced()
			x.setJob(tc.deployment)
			found := x.Find("a", "deployment", "serve", "")
			if (found != nil) != tc.want || x.Len() > 1 {
				t.Fatalf("%d tasks, among them the Deployment %+v", x.Len(), found)
			}
			if found != nil && (found.State != tasks.Stopped || found.NoWorkload || found.StoppedReplicas != tc.wantReplicas) {
				t.Errorf("it is %s with %d replicas to resume, want Stopped with %d", found.State, found.StoppedReplicas, tc.wantReplicas)
			}
		})
	}
}

// A Deployment stops when its pods end, is stopped once they have, and runs again when it
// is resumed.
func TestDeploymentStopsAndResumes(t *testing.T) {
	x, clock := newTestIndex()
	x.workloadsSynced()
	x.podsSynced()
	is := func(state tasks.State) {
		t.Helper()
		if found := x.Find("a", "deployment", "serve", ""); found == nil || found.State != state || found.NoWorkload || x.Len() != 1 {
			t.Fatalf("%d tasks, among them the Deployment %+v, want it to be %s", x.Len(), found, state)
		}
	}
	recent := func(o *corev1.Pod) { o.CreationTimestamp = metav1.NewTime(clock.At) }
	x.setJob(serveObject())
	x.SetPod(replica(x, "s-1"))
	x.SetWorkload(gpu(workloadOf("s-1", taskstest.Admitted(clock.At)...)), false)
	is(tasks.Running)
	x.setJob(serveObject(had("1")))
	is(tasks.Running) // its pod has not ended yet, or the annotation is an old one
	x.SetPod(replica(x, "s-1", func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: clock.At} }))
	is(tasks.Stopping)
	x.deletePod(replica(x, "s-1"))
	is(tasks.Stopping)
	x.DeleteWorkload(workloadOf("s-1"))
	is(tasks.Stopped)
	x.setJob(serveObject())
	x.SetPod(replica(x, "s-2", recent))
	is(tasks.Stopped) // Kueue has had no time to create the Workload
	x.SetWorkload(workloadOf("s-2", taskstest.Pending(clock.At)...), false)
	is(tasks.Pending)
	x.dropJob(serveObject())
	x.deletePod(replica(x, "s-2"))
	x.DeleteWorkload(workloadOf("s-2"))
	if x.Len() != 0 || len(x.jobs)+len(x.deployments)+len(x.undecided)+len(x.podsBy)+len(x.parts) != 0 {
		t.Errorf("the index still has entries of deleted objects: %d tasks", x.Len())
	}
}

// Pods of a Deployment that Kueue does not manage are that Deployment, as a task without a
// Workload.
func TestDeploymentBesideKueue(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.podsSynced()
	x.setJob(serveObject())
	x.SetPod(replica(x, "s-1"))
	found := x.Find("a", "deployment", "serve", "")
	if found == nil || !found.NoWorkload || found.State != tasks.Running || found.Size.Wanted != 1 || x.Len() != 1 {
		t.Errorf("%d tasks, among them the Deployment %+v, want it to run without a Workload", x.Len(), found)
	}
}

// A Workload that names a Deployment as its controller, and no pod, is a part as it is.
func TestWorkloadOfADeploymentWithoutAPod(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	x.podsSynced()
	x.setJob(serveObject())
	w := workloadOf("by-hand", taskstest.Pending(taskstest.Start)...)
	w.OwnerReferences[0].Kind, w.OwnerReferences[0].Name, w.OwnerReferences[0].UID = tasks.DeploymentKind, "serve", "d-1"
	x.SetWorkload(w, false)
	if found := x.Find("a", "deployment", "serve", ""); x.Len() != 1 || found == nil || found.State != tasks.Pending {
		t.Errorf("%d tasks, among them the Deployment %+v", x.Len(), found)
	}
}

// Without the Deployment, such as without the permission to watch them, each pod is a
// task, and one that is known late becomes a part.
func TestPodsOfAnUnknownDeployment(t *testing.T) {
	x, clock := newTestIndex()
	x.workloadsSynced()
	x.podsSynced()
	for _, name := range []string{"s-1", "s-2"} {
		x.SetPod(replica(x, name))
		x.SetWorkload(workloadOf(name, taskstest.Pending(taskstest.Start)...), false)
	}
	if x.Len() != 0 {
		t.Errorf("%d tasks before it is decided what they are", x.Len())
	}
	clock.At = clock.At.Add(WorkloadGrace)
	for _, name := range []string{"s-1", "s-2"} {
		x.SetWorkload(workloadOf(name, taskstest.Pending(taskstest.Start)...), false)
	}
	if x.Len() != 2 || x.Find("a", "pod", "s-1", "") == nil {
		t.Errorf("%d tasks, want one for each pod", x.Len())
	}
	x.setJob(serveObject())
	if x.Len() != 1 || x.Find("a", "deployment", "serve", "") == nil {
		t.Errorf("%d tasks, want the Deployment", x.Len())
	}
}

// Kubernetes removes the reference to a deleted StatefulSet from its Workload, whose other
// owners are pods. It is no group of pods then.
func TestDeletedStatefulSet(t *testing.T) {
	x, _ := newTestIndex()
	x.Record()
	x.workloadsSynced()
	w := gpu(workloadOf("s", taskstest.Admitted(taskstest.Start)...))
	w.OwnerReferences[0].Controller = nil
	x.SetPod(podObject(x, "a", "s", "StatefulSet", "s-1"))
	withSet := w.DeepCopy()
	withSet.OwnerReferences = append(withSet.OwnerReferences, metav1.OwnerReference{Kind: "StatefulSet", Name: "serve", UID: "s-1"})
	for _, now := range []*kueue.Workload{withSet, w} {
		x.SetWorkload(now, false)
		if x.Len() != 1 || x.Find("a", "statefulset", "serve", "s-1") == nil {
			t.Fatalf("%d tasks, want the StatefulSet", x.Len())
		}
	}
	x.DeleteWorkload(w)
	if taken := x.TakeChanged(10); x.Len() != 0 || len(taken) != 1 || taken[0].Kind != "StatefulSet" {
		t.Errorf("%d tasks, and %+v recorded, want one deleted StatefulSet", x.Len(), taken)
	}
}
