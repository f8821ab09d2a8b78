package tasks

import (
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"
	"kuota.dev/kuota/governance/quota"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// NoWorkload is the reason of a task that Kueue has made no Workload of.
const NoWorkload = "NoWorkload"

// Kueue's labels on a job.
const (
	queueLabel = "kueue.x-k8s.io/queue-name"
	classLabel = "kueue.x-k8s.io/priority-class"
)

// job is what is kept of an object that Kueue makes Workloads of, of whatever
// kind. It tells which tasks have no Workload, and whose pods are whose.
type job struct {
	metav1.ObjectMeta // name, namespace, UID and when it was made
	kind              string
	controller        types.UID // of what it is a part; empty for nothing
	alone             bool      // not a part of another job
	queue, class      string    // by its labels
	ended             bool
}

// follow has an index told of jobs, pods and governed namespaces.
func (x *Index) follow(c *cluster.Cluster) {
	c.HandleNamespaces(handler(x.setSpace, x.dropSpace))
	for _, k := range enforcement.JobKinds() {
		if k.Group == "apps" { // their pods or groups of pods are the tasks
			continue
		}
		kind := k.Kind
		c.WatchResource(cluster.WatchedResource{
			Resource:  schema.GroupResource{Group: k.Group, Resource: k.Resource},
			Transform: func(object any) (any, error) { return slimJob(object, kind), nil },
			Handler:   handler(x.setJob, x.dropJob),
		})
	}
	c.WatchResource(cluster.WatchedResource{
		Resource: schema.GroupResource{Resource: "pods"}, Transform: x.slimPod,
		Handler: handler(x.setPod, x.dropPod), OnSynced: x.toldPods,
	})
}

// handler calls set with what is there and drop with what is gone.
func handler[T any](set, drop func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if o, ok := object.(T); ok {
				set(o)
			}
		},
		UpdateFunc: func(_, object any) {
			if o, ok := object.(T); ok {
				set(o)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if o, ok := object.(T); ok {
				drop(o)
			}
		},
	}
}

// managed are the kinds of jobs that Kueue knows: what is a part of one of them is
// no task by itself.
var managed = func() map[string]bool {
	kinds := map[string]bool{}
	for _, k := range enforcement.JobKinds() {
		kinds[k.Kind] = true
	}
	return kinds
}()

// slimJob is what is kept of a job; of what is kept, the same: a watch slims what
// was there at its start twice.
func slimJob(object any, kind string) any {
	o, ok := object.(metav1.Object)
	if _, kept := object.(*job); kept || !ok {
		return object
	}
	j := &job{
		ObjectMeta: metav1.ObjectMeta{Namespace: same(o.GetNamespace()), Name: o.GetName(), UID: o.GetUID(), CreationTimestamp: o.GetCreationTimestamp()},
		kind:       kind, alone: true, queue: same(o.GetLabels()[queueLabel]), class: same(o.GetLabels()[classLabel]),
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		j.controller, j.alone = owner.UID, !managed[owner.Kind]
	}
	j.ended = o.GetDeletionTimestamp() != nil
	if batch, ok := object.(*batchv1.Job); ok {
		for _, c := range batch.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				j.ended = true
			}
		}
	}
	return j
}

func (x *Index) setJob(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j.controller != "" {
		put(x.children, member{j.Namespace, string(j.controller)}, j.UID)
	}
	x.take(j)
}

func (x *Index) dropJob(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	take(x.children, member{j.Namespace, string(j.controller)}, j.UID)
	x.leave(j)
}

// take keeps a job that can be a task by itself.
func (x *Index) take(j *job) {
	key := groupKey{j.Namespace, string(j.UID)}
	if !j.alone || j.ended {
		x.leave(j)
		return
	}
	x.jobs[key] = j
	put(x.jobsIn, j.Namespace, key)
	x.make(key, false)
}

func (x *Index) leave(j *job) {
	key := groupKey{j.Namespace, string(j.UID)}
	if x.jobs[key] == nil {
		return
	}
	delete(x.jobs, key)
	take(x.jobsIn, j.Namespace, key)
	x.make(key, false)
}

// setSpace takes in whether a namespace is governed: there, jobs are tasks even
// without a queue.
func (x *Index) setSpace(n *corev1.Namespace) {
	x.govern(n.Name, n.Labels[desired.LabelGoverned] == "true")
}

func (x *Index) dropSpace(n *corev1.Namespace) { x.govern(n.Name, false) }

func (x *Index) govern(namespace string, governed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.governed[namespace] == governed {
		return
	}
	if governed {
		x.governed[namespace] = true
	} else {
		delete(x.governed, namespace)
	}
	for key := range x.jobsIn[namespace] {
		x.make(key, false)
	}
}

// told takes in that all Workloads were told of that there were at the start: from
// now on it is known which jobs have none.
func (x *Index) told() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete = true
	for key := range x.jobs {
		x.make(key, true)
	}
}

func (x *Index) toldPods() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.podsKnown = true
}

// grace is how long Kueue may take to make a Workload of a job before the job is
// a task without one. Times of creation are in whole seconds.
const grace = 3 * time.Second

// bare is the job of a task that has no Workload; nil where it is none, or not
// yet.
func (x *Index) bare(key groupKey) *job {
	j := x.jobs[key]
	if j == nil || !x.complete || j.queue == "" && !x.governed[j.Namespace] {
		return nil
	}
	if j.kind == podGroup {
		for _, t := range x.named[address{j.Namespace, strings.ToLower(podGroup), j.Name}] {
			if !t.NoWorkload {
				return nil
			}
		}
	}
	if wait := grace - x.now().Sub(j.CreationTimestamp.Time); wait > 0 && wait <= grace {
		x.later(key, wait)
		return nil
	}
	return j
}

// later looks at a job again.
func (x *Index) later(key groupKey, wait time.Duration) {
	if x.waits[key] {
		return
	}
	x.waits[key] = true
	time.AfterFunc(wait, func() {
		x.mu.Lock()
		delete(x.waits, key)
		x.make(key, false)
		x.mu.Unlock()
		if x.notify != nil {
			x.notify()
		}
	})
}

// bareWorkload stands for the Workload that there is not.
func bareWorkload(j *job) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: j.ObjectMeta}
	w.Spec.QueueName = kueue.LocalQueueName(j.queue)
	return w
}

// fromJob is a task that has no Workload. Its pods tell whether it runs.
func (x *Index) fromJob(j *job) *Task {
	t := &Task{
		Namespace: j.Namespace, Kind: j.kind, Name: j.Name, UID: string(j.UID), Queue: j.queue, PriorityClass: j.class,
		State: Pending, Since: j.CreationTimestamp.Time, Submitted: j.CreationTimestamp.Time, NoWorkload: true,
		Reason: NoWorkload, Usage: quota.Resources{}, Requests: quota.Resources{},
	}
	t.main = bareWorkload(j)
	for _, p := range x.podsOf(t) {
		switch {
		case p.ended():
			continue
		case p.Phase == corev1.PodRunning:
			t.State = Running
		case t.State == Pending && !p.Gated:
			t.State = Starting
		}
		t.Size.Wanted++
		t.Requests.Add(p.Requests)
	}
	if t.State == Pending {
		t.WaitingSince = t.Submitted
	} else {
		t.Size.Admitted = t.Size.Wanted
	}
	t.Size.Min = t.Size.Wanted
	return t
}
