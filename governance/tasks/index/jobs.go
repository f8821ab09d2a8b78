package index

import (
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// NoWorkload is the reason of a task that Kueue created no Workload for.
const NoWorkload = "NoWorkload"

// job is what the cache keeps of an object that Kueue creates Workloads for, of
// whatever kind: jobs without a Workload are tasks, and jobs own pods.
type job struct {
	metav1.ObjectMeta // name, namespace, UID and creation time
	kind              string
	controller        types.UID   // empty for none
	alone             bool        // not a part of another job
	queue, class      string      // by its labels
	ended             bool        // or is being deleted
	outcome           tasks.State // of a Job or an ElasticJob that finished; empty for none, and if unknown
	started, finished time.Time   // zero while it has not, and if unknown
	message           string      // why it failed
	stoppedReplicas   int32       // see stoppedReplicas
	jobFacts
}

// Watch fills the index from the watches of a cluster: of Workloads, jobs, pods and
// governed namespaces. It is called once, before the cluster runs.
func (x *Index) Watch(c *cluster.Cluster) {
	x.notify = c.TaskChanges.Notify
	c.HandleWorkloads(new(slimmer).slim, x.Handler(), x.workloadsSynced)
	c.HandleNamespaces(handler(ignoreFirst(x.setSpace), x.dropSpace))
	c.HandleElasticJobs(handler(ignoreFirst(x.setElasticJob), x.dropElasticJob))
	for _, k := range enforcement.JobKinds() {
		kind := k.Kind
		c.WatchResource(cluster.WatchedResource{
			Resource:  schema.GroupResource{Group: k.Group, Resource: k.Resource},
			Transform: func(object any) (any, error) { return slimJob(object, kind), nil },
			Handler:   handler(ignoreFirst(x.setJob), x.dropJob),
		})
	}
	c.WatchResource(cluster.WatchedResource{
		Resource: schema.GroupResource{Resource: "pods"}, Transform: x.slimPod,
		Handler: handler(ignoreFirst(x.SetPod), x.deletePod), OnSynced: x.podsSynced,
	})
}

// handler calls set for objects that exist, with whether they existed before this process,
// and drop for deleted ones.
func handler[T any](set func(T, bool), drop func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if o, ok := object.(T); ok {
				set(o, first)
			}
		},
		UpdateFunc: func(_, object any) {
			if o, ok := object.(T); ok {
				set(o, false)
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

// ignoreFirst returns set for handler.
func ignoreFirst[T any](set func(T)) func(T, bool) { return func(o T, _ bool) { set(o) } }

// managed are the kinds that Kueue manages: their dependents are no tasks of their
// own.
var managed = func() map[string]bool {
	kinds := map[string]bool{}
	for _, k := range enforcement.JobKinds() {
		kinds[k.Kind] = true
	}
	return kinds
}()

// slimJob returns what the cache keeps of a job. A watch slims the objects of its
// start twice, so slimmed jobs are returned as they are.
func slimJob(object any, kind string) any {
	o, ok := object.(metav1.Object)
	if _, kept := object.(*job); kept || !ok {
		return object
	}
	j := &job{
		ObjectMeta: metav1.ObjectMeta{Namespace: intern(o.GetNamespace()), Name: o.GetName(), UID: o.GetUID(), CreationTimestamp: o.GetCreationTimestamp()},
		kind:       kind, alone: true, queue: intern(o.GetLabels()[tasks.QueueLabel]), class: intern(o.GetLabels()[desired.PriorityClassLabel]),
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		leads := owner.Kind == "Pod" && tasks.IsServingKind(kind) // a group of a LeaderWorkerSet
		j.controller, j.alone = owner.UID, !managed[owner.Kind] && !leads
	}
	j.jobFacts = factsOf(o)
	if tasks.IsServingKind(kind) {
		j.stoppedReplicas = stoppedReplicas(o.GetAnnotations())
	}
	if _, uid := v1alpha1.ElasticJobOf(o.GetName(), o.GetLabels()); uid != "" && kind == "Job" { // it has no owner reference to the ElasticJob
		j.controller, j.alone = uid, false
	}
	j.ended = o.GetDeletionTimestamp() != nil
	if batch, ok := object.(*batchv1.Job); ok {
		j.setOutcome(&batch.Status)
		if of := ptr.Deref(batch.Spec.Completions, 1); of > 1 {
			j.completed = tasks.Completions{Done: batch.Status.Succeeded, Of: of, Array: batch.Spec.BackoffLimitPerIndex != nil}
		}
	}
	return j
}

// setOutcome sets what the status of a batch Job says.
func (j *job) setOutcome(status *batchv1.JobStatus) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		switch {
		case c.Status != corev1.ConditionTrue:
			continue
		case c.Type == batchv1.JobComplete:
			j.outcome = tasks.Succeeded
		case c.Type == batchv1.JobFailed:
			j.outcome, j.message = tasks.Failed, intern(truncate(tasks.FirstLine(c.Message)))
		default:
			continue
		}
		j.finished = c.LastTransitionTime.Time
		j.ended = j.ended || j.queue == "" // it was no task of Kueue
	}
	if status.StartTime != nil {
		j.started = status.StartTime.Time
	}
}

// elasticJob returns what the index keeps of an ElasticJob: until its base has a
// Workload, the ElasticJob is a task without one.
func elasticJob(e *v1alpha1.ElasticJob) *job {
	j := &job{
		ObjectMeta: metav1.ObjectMeta{Namespace: intern(e.Namespace), Name: e.Name, UID: e.UID, CreationTimestamp: e.CreationTimestamp},
		kind:       v1alpha1.ElasticJobKind, alone: true, queue: intern(e.Labels[tasks.QueueLabel]), class: intern(e.Labels[desired.PriorityClassLabel]),
		ended: e.DeletionTimestamp != nil, jobFacts: factsOf(e), outcome: elasticOutcomes[e.Status.State],
	}
	if last := e.Status.LastScaleTime; j.outcome != "" && last != nil { // to 0
		j.finished = last.Time
	} else if j.outcome != "" {
		j.finished = e.CreationTimestamp.Time
	}
	return j
}

var elasticOutcomes = map[v1alpha1.ElasticState]tasks.State{v1alpha1.ElasticSucceeded: tasks.Succeeded, v1alpha1.ElasticFailed: tasks.Failed}

func (x *Index) setElasticJob(e *v1alpha1.ElasticJob) { x.setJob(elasticJob(e)) }

func (x *Index) dropElasticJob(e *v1alpha1.ElasticJob) { x.dropJob(elasticJob(e)) }

func (x *Index) setJob(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j.controller != "" {
		addTo(x.children, member{j.Namespace, string(j.controller)}, j.UID)
	}
	if j.kind == tasks.DeploymentKind && j.alone { // before it can be a task without a Workload
		x.setDeployment(j)
	}
	x.setFacts(j)
	x.addJob(j)
}

// jobFacts are what only the job of a task says: see SubmittedBy, Labels and Completed of
// tasks.Task.
type jobFacts struct {
	by, labels string
	completed  tasks.Completions
}

// factsOf returns who submitted a job, and the labels that people gave it.
func factsOf(o metav1.Object) jobFacts {
	var labels []string
	for key, value := range o.GetLabels() {
		if domain, _, _ := strings.Cut(key, "/"); domain != "kuota.dev" && !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasSuffix(domain, "k8s.io") {
			labels = append(labels, key+"="+value)
		}
	}
	slices.Sort(labels)
	return jobFacts{by: intern(o.GetAnnotations()[v1alpha1.AnnotationSubmittedBy]), labels: intern(truncate(strings.Join(labels, " ")))}
}

// setFacts keeps the facts of a job, also after it ended.
func (x *Index) setFacts(j *job) {
	if !j.alone || j.jobFacts == (jobFacts{}) {
		return
	}
	key := tasks.Key{Namespace: j.Namespace, UID: string(j.UID)}
	x.facts[key] = j.jobFacts
	if t := x.tasks[key]; t != nil && (t.SubmittedBy != j.by || t.Labels != j.labels || t.Completed != j.completed) {
		x.rebuild(key, false)
	}
}

func (x *Index) dropJob(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	removeFrom(x.children, member{j.Namespace, string(j.controller)}, j.UID)
	delete(x.facts, tasks.Key{Namespace: j.Namespace, UID: string(j.UID)})
	x.removeJob(j)
	if j.kind == tasks.DeploymentKind {
		x.dropDeployment(j)
	}
}

// addJob adds a job that can be a task of its own.
func (x *Index) addJob(j *job) {
	key := tasks.Key{Namespace: j.Namespace, UID: string(j.UID)}
	if !j.alone || j.ended {
		x.removeJob(j)
		return
	}
	x.jobs[key] = j
	addTo(x.jobsIn, j.Namespace, key)
	x.rebuild(key, false)
}

func (x *Index) removeJob(j *job) {
	key := tasks.Key{Namespace: j.Namespace, UID: string(j.UID)}
	if x.jobs[key] == nil {
		return
	}
	delete(x.jobs, key)
	removeFrom(x.jobsIn, j.Namespace, key)
	x.rebuild(key, false)
}

// setSpace records whether a namespace is governed: there, jobs are tasks even
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
		x.rebuild(key, false)
	}
}

// workloadsSynced records that all Workloads of the start were added: from now on
// the index can find jobs without one.
func (x *Index) workloadsSynced() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.workloadsComplete = true
	for key := range x.jobs {
		x.rebuild(key, true)
	}
}

func (x *Index) podsSynced() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.podsComplete = true
	var lacking []tasks.Key
	for key, t := range x.tasks {
		if x.unplaced(t) {
			lacking = append(lacking, key)
		}
	}
	for _, key := range lacking {
		x.rebuild(key, false)
	}
}

// WorkloadGrace is how long Kueue may take to create a Workload before the job is a
// task without one. Creation times are in whole seconds.
const WorkloadGrace = 3 * time.Second

// jobWithoutWorkload returns the job of a task without a Workload; nil if it has
// one, or may still get one.
func (x *Index) jobWithoutWorkload(key tasks.Key) *job {
	j := x.jobs[key]
	if j == nil || !x.workloadsComplete || j.queue == "" && !x.governed[j.Namespace] {
		return nil
	}
	if j.kind == tasks.PodGroup {
		for _, t := range x.named[address{j.Namespace, strings.ToLower(tasks.PodGroup), j.Name}] {
			if !t.NoWorkload {
				return nil
			}
		}
	}
	known := x.tasks[key] != nil || j.outcome != "" // a Workload that it had is deleted
	if wait := WorkloadGrace - x.Now().Sub(j.CreationTimestamp.Time); wait > 0 && wait <= WorkloadGrace && !known {
		x.rebuildLater(key, wait)
		return nil
	}
	return j
}

// rebuildLater rebuilds a task after a delay.
func (x *Index) rebuildLater(key tasks.Key, wait time.Duration) {
	if x.rebuilding[key] {
		return
	}
	x.rebuilding[key] = true
	time.AfterFunc(wait, func() {
		x.mu.Lock()
		delete(x.rebuilding, key)
		x.rebuild(key, false)
		x.mu.Unlock()
		x.notifyListeners()
	})
}

// placeholderWorkload returns a stand-in for the Workload that does not exist.
func placeholderWorkload(j *job) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: j.ObjectMeta}
	w.Spec.QueueName = kueue.LocalQueueName(j.queue)
	return w
}

// fromJob returns a task without a Workload. Its pods decide its state. It returns nil
// for a serving task without pods and without a queue, which is no task of Kueue.
func (x *Index) fromJob(j *job) *tasks.Task {
	t := &tasks.Task{
		Namespace: j.Namespace, Kind: j.kind, Name: j.Name, UID: string(j.UID), Queue: j.queue, PriorityClass: j.class,
		State: tasks.Pending, Since: j.CreationTimestamp.Time, Submitted: j.CreationTimestamp.Time, NoWorkload: true,
		Reason: NoWorkload, Usage: quota.Resources{}, Requests: quota.Resources{},
	}
	t.Main = placeholderWorkload(j)
	if j.outcome != "" {
		t.State, t.Since, t.FinishedAt, t.Reason, t.Message, t.AdmittedAt = j.outcome, j.finished, j.finished, "", j.message, j.started
		return t
	}
	pods := x.podsOf(t)
	if tasks.IsServingKind(j.kind) {
		if pods = x.servingPods(t); len(pods) == 0 {
			return x.stopped(t, j)
		}
	}
	for _, p := range pods {
		switch {
		case p.ended():
			continue
		case p.Phase == corev1.PodRunning:
			t.State = tasks.Running
		case t.State == tasks.Pending && !p.Gated:
			t.State = tasks.Starting
		}
		t.Size.Wanted++
		t.Requests.Add(p.Requests)
	}
	if t.State == tasks.Pending {
		t.WaitingSince = t.Submitted
	} else {
		t.Size.Admitted = t.Size.Wanted
	}
	t.Size.Min = t.Size.Wanted
	return t
}
