package interrupted_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// surroundings answers what the controller of ElasticJobs asks about other tasks. The
// questions only read, from a cache of their own, so they are not interrupted.
var surroundings = struct {
	sync.Once
	*queries.Service
	err error
}{}

func tasksOf(t *testing.T) *queries.Service {
	t.Helper()
	c := clustertest.Get(t)
	surroundings.Do(func() {
		ctrl.SetLogger(logr.Discard())
		connection, err := cluster.New(c.Console, cluster.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			surroundings.err = err
			return
		}
		surroundings.Service = queries.New(connection, &access.Service{Cluster: connection})
		go func() { _ = connection.Run(context.Background()) }()
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { return connection.AllSynced() })
	})
	if surroundings.err != nil {
		t.Fatal(surroundings.err)
	}
	return surroundings.Service
}

// elasticRun reconciles one ElasticJob, by a controller that is interrupted once and
// continued by a new one.
type elasticRun struct {
	*testing.T
	cluster *clustertest.Cluster
	tasks   *queries.Service
	job     *v1alpha1.ElasticJob
	line    *clustertest.Line // of the first controller
	current *elastic.Reconciler
	resumed bool
}

func (r *elasticRun) start(line *clustertest.Line) {
	r.Helper()
	direct, err := client.New(line.Over(r.cluster.Console), client.Options{Scheme: cluster.Scheme, Mapper: r.cluster.Client.RESTMapper()})
	if err != nil {
		r.Fatal(err)
	}
	// Only writes and reads that precede them are interrupted: how often the controller
	// looks for room depends on time.
	cached := splitClient{Client: direct, reader: r.cluster.Client}
	r.current = elastic.NewReconciler(cached, direct, partsReader{r.cluster.Client}, elastic.Options{Rooms: r.tasks.Rooms, Claims: r.tasks.Claims, Sources: r.tasks.IdleSources})
}

// splitClient reads by another client than it writes with.
type splitClient struct {
	client.Client
	reader client.Reader
}

func (s splitClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return s.reader.Get(ctx, key, object, options...)
}

func (s splitClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return s.reader.List(ctx, list, options...)
}

// partsReader lists only objects of ElasticJobs, as the controller's cache does.
type partsReader struct{ client.Reader }

func (p partsReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return p.Reader.List(ctx, list, append(options, client.HasLabels{v1alpha1.LabelElasticJobUID})...)
}

// until reconciles until done returns nil.
func (r *elasticRun) until(done func(context.Context) error) {
	r.Helper()
	clustertest.Eventually(r, clustertest.Patience, func(ctx context.Context) error {
		_, err := r.current.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.job)})
		if r.line.Broken() && !r.resumed {
			r.resumed = true
			r.start(&clustertest.Line{})
			return errors.New("the controller was interrupted")
		}
		if err != nil {
			return err
		}
		return done(ctx)
	})
}

// hasSize returns a check that the job has a size, with no more Jobs than that.
func (r *elasticRun) hasSize(want int32) func(context.Context) error {
	return func(ctx context.Context) error {
		var now v1alpha1.ElasticJob
		if err := r.cluster.Client.Get(ctx, client.ObjectKeyFromObject(r.job), &now); err != nil {
			return err
		}
		pods := int32(0)
		for _, job := range r.parts(ctx) {
			pods += *job.Spec.Parallelism
		}
		if now.Status.Replicas != want || pods != want {
			return fmt.Errorf("size %d and Jobs of %d pods, want %d", now.Status.Replicas, pods, want)
		}
		return nil
	}
}

func (r *elasticRun) parts(ctx context.Context) []batchv1.Job {
	var list batchv1.JobList
	if err := r.cluster.Client.List(ctx, &list, client.InNamespace(r.job.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: r.job.Name}); err != nil {
		r.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(j batchv1.Job) bool { return j.DeletionTimestamp != nil })
}

// TestElasticJob interrupts the controller of ElasticJobs while a job starts, grows, gives
// growth back to a task, grows again and is deleted.
func TestElasticJob(t *testing.T) {
	setPolicy(t, policyOf(nil, false))
	c := clustertest.Get(t)
	pool := clustertest.Name("lab.elastic")
	c.Node(t, pool, map[string]string{"node.kubernetes.io/instance-type": pool, corev1.LabelOSStable: "linux"},
		clustertest.Resources(map[corev1.ResourceName]string{corev1.ResourceCPU: "64", corev1.ResourceMemory: "512Gi", corev1.ResourcePods: "110", "nvidia.com/gpu": "8"}))
	training, other := clustertest.Name("training"), clustertest.Name("other")
	for team, gpus := range map[string]int64{training: 2, other: 6} {
		spec := v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: pool, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}}
		spec.Sharing.Unlimited = true
		create(t, team, spec)
		newControllers(t, team, 0, false, noKueue).run(t, allocationReady(t, team))
		defer deleteTeam(t, team)
	}
	scenarios := 0
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		scenarios++
		r := &elasticRun{T: t, cluster: c, tasks: tasksOf(t), line: &clustertest.Line{BreakAt: breakAt, After: after}}
		r.start(r.line)
		r.job = &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: desired.DefaultNaming.Namespace(training), Name: fmt.Sprintf("train-%d", scenarios), Labels: queueOf(training)}}
		r.job.Spec.ElasticPolicy = v1alpha1.ElasticPolicy{MinReplicas: 2, MaxReplicas: 6, ReplicaIncrementStep: ptr.To[int32](2), MinStablePeriodSeconds: 1, BackoffMaxSeconds: 1, FaultyScaleDownTimeoutInSeconds: 5}
		r.job.Spec.Template = onePod()
		if err := c.Client.Create(t.Context(), r.job); err != nil {
			t.Fatal(err)
		}
		var state strings.Builder
		reach := func(size int32) {
			t.Helper()
			r.until(r.hasSize(size))
			fmt.Fprintf(&state, "size %d:", size)
			for _, job := range r.parts(t.Context()) {
				fmt.Fprintf(&state, " %d pods of class %q", *job.Spec.Parallelism, job.Labels[desired.PriorityClassLabel])
			}
			state.WriteString("\n")
		}
		reach(6)
		task := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: desired.DefaultNaming.Namespace(other), Name: fmt.Sprintf("task-%d", scenarios), Labels: queueOf(other)}}
		task.Spec = batchv1.JobSpec{Suspend: ptr.To(true), Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4), Template: onePod()}
		if err := c.Client.Create(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		reach(4)
		if err := c.Client.Delete(t.Context(), task, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		reach(6)
		if err := c.Client.Delete(t.Context(), r.job); err != nil {
			t.Fatal(err)
		}
		r.until(func(ctx context.Context) error {
			var service corev1.Service
			gone := c.Client.Get(ctx, client.ObjectKeyFromObject(r.job), &v1alpha1.ElasticJob{})
			service.Name = elastic.ServiceName(r.job.Name)
			left := c.Client.Get(ctx, client.ObjectKey{Namespace: r.job.Namespace, Name: service.Name}, &service)
			if !apierrors.IsNotFound(gone) || !apierrors.IsNotFound(left) || len(r.parts(ctx)) > 0 {
				return fmt.Errorf("left: the job (%v), its Service (%v), %d Jobs", gone, left, len(r.parts(ctx)))
			}
			return nil
		})
		return state.String(), r.line.Calls()
	})
}

func queueOf(team string) map[string]string {
	return map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(team)}
}

// onePod returns a template of a pod of one GPU that runs until it is deleted.
func onePod() corev1.PodTemplateSpec {
	each := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: each, Limits: each}}},
		},
	}
}
