package podless

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodsEnd is how long the pods of most Jobs take to end. Kueue gives the quota of a
// preempted Workload to others only then, so that it also sets how fast a preemption
// loop turns: with real pods and KWOK it takes about as long.
const PodsEnd = 600 * time.Millisecond

// manager is a manager of Jobs that does not exist: Kueue suspends and resumes such a
// Job like any other, and no pods are created for it.
const manager = "kuota.dev/no-pods"

// How long a Job runs, and how long its pods take to end.
const (
	runsAnnotation = "lab.kuota.dev/runs"
	endsAnnotation = "lab.kuota.dev/ends"
)

// SetUp lets the runner run a Job that is not created yet. The Job completes after it
// was resumed for runs; 0 is never. ends is how long its pods take to end; 0 is PodsEnd.
func SetUp(job *batchv1.Job, runs, ends time.Duration) {
	name := manager
	job.Spec.ManagedBy = &name
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[runsAnnotation], job.Annotations[endsAnnotation] = runs.String(), cmp.Or(ends, PodsEnd).String()
}

const retryAfter = 50 * time.Millisecond // a failed write of a Job's status

// runner counts a resumed Job as active, a suspended one as inactive once its pods
// would have ended, and completes a Job that has run long enough.
type runner struct {
	client client.Client
	ctx    context.Context

	mu   sync.Mutex
	jobs map[types.UID]*running
}

// running is one Job of the runner.
type running struct {
	mu      sync.Mutex
	resumed bool
	timer   *time.Timer // of the next change of the Job's status
	runs    time.Duration
	ends    time.Duration
}

// Run runs the Jobs that SetUp was called for, until the test ends.
func Run(t testing.TB, c *clustertest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &runner{client: c.Client, ctx: ctx, jobs: map[types.UID]*running{}}
	informers, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, &batchv1.Job{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.observe,
		UpdateFunc: func(_, object any) { r.observe(object) },
	}); err != nil {
		t.Fatal(err)
	}
}

func (r *runner) observe(object any) {
	job, ok := object.(*batchv1.Job)
	if !ok || job.Spec.ManagedBy == nil || *job.Spec.ManagedBy != manager || job.DeletionTimestamp != nil || job.Status.CompletionTime != nil { // complete: run before this runner began
		return
	}
	r.mu.Lock()
	state := r.jobs[job.UID]
	if state == nil {
		state = &running{}
		state.runs, _ = time.ParseDuration(job.Annotations[runsAnnotation])
		state.ends, _ = time.ParseDuration(job.Annotations[endsAnnotation])
		r.jobs[job.UID] = state
	}
	r.mu.Unlock()

	resumed := job.Spec.Suspend == nil || !*job.Spec.Suspend
	state.mu.Lock()
	defer state.mu.Unlock()
	if resumed == state.resumed {
		return
	}
	state.resumed = resumed
	if state.timer != nil {
		state.timer.Stop()
	}
	key := client.ObjectKeyFromObject(job)
	if !resumed {
		state.timer = time.AfterFunc(state.ends, func() { r.write(key, batchv1.JobStatus{}) })
		return
	}
	start := metav1.Now()
	go r.write(key, batchv1.JobStatus{Active: 1, StartTime: &start})
	if state.runs > 0 {
		state.timer = time.AfterFunc(state.runs, func() { r.complete(key, start) })
	}
}

func (r *runner) complete(key client.ObjectKey, start metav1.Time) {
	now := metav1.Now()
	done := batchv1.JobStatus{StartTime: &start, CompletionTime: &now, Succeeded: 1}
	for _, name := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		done.Conditions = append(done.Conditions, batchv1.JobCondition{Type: name, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	r.write(key, done)
}

// write sets a Job's status, unless the Job has been deleted.
func (r *runner) write(key client.ObjectKey, status batchv1.JobStatus) {
	for r.ctx.Err() == nil {
		var job batchv1.Job
		if err := r.client.Get(r.ctx, key, &job); apierrors.IsNotFound(err) {
			return
		} else if err != nil {
			time.Sleep(retryAfter)
			continue
		}
		job.Status = status
		if err := r.client.Status().Update(r.ctx, &job); err == nil {
			return
		}
		time.Sleep(retryAfter)
	}
}
