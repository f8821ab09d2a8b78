package elastic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The priority classes of the cluster policy that tests apply.
const (
	inferenceClass = "inference-priority"
	trainingClass  = "training-priority"
)

// clusterPolicy is how tasks are prioritized and idle compute is shared.
type clusterPolicy struct {
	tasks v1alpha1.TaskPrioritization
	idle  v1alpha1.IdleComputeStrategy
}

// namedPolicy has the name of what is special.
type namedPolicy struct {
	name string
	clusterPolicy
}

var policies = []namedPolicy{
	{"FirstComeFirstServe", clusterPolicy{v1alpha1.FirstComeFirstServe, v1alpha1.IdleFirstComeFirstServe}},
	{"TaskRanking", clusterPolicy{v1alpha1.TaskRanking, v1alpha1.IdleFirstComeFirstServe}},
	{"FairShare", clusterPolicy{v1alpha1.TaskRanking, v1alpha1.IdleFairShare}},
}

// apply writes the cluster policy and waits until it and Kueue's configuration are active.
func (p clusterPolicy) apply(t *testing.T) {
	t.Helper()
	c := setup(t)
	object := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		_, err := controllerutil.CreateOrUpdate(ctx, c.Client, object, func() error {
			object.Spec.TaskPrioritization, object.Spec.IdleCompute.Strategy, object.Spec.Enforcement = p.tasks, p.idle, v1alpha1.EnforcementNone
			object.Spec.PriorityClasses = []v1alpha1.PriorityClass{{Name: "inference", Weight: ptr.To[int32](100)}, {Name: "training", Weight: ptr.To[int32](50)}}
			return nil
		})
		return err
	})
	clustertest.Eventually(t, 2*clustertest.Patience, func(ctx context.Context) error {
		var now v1alpha1.ClusterPolicy
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), &now); err != nil {
			return err
		}
		if r := now.Status.Ranking; now.Status.ObservedGeneration != object.Generation || r == nil || r.Step != v1alpha1.RankingSettled || r.Active != p.tasks {
			return fmt.Errorf("policy status %+v", now.Status)
		}
		for _, name := range []string{v1alpha1.ConditionFairShare, v1alpha1.ConditionPriorityClasses} {
			if c := meta.FindStatusCondition(now.Status.Conditions, name); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != object.Generation {
				return fmt.Errorf("condition %s: %+v", name, c)
			}
		}
		return nil
	})
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}})
	})
}

// grace is the graceful shutdown timeout of most tests.
func grace() int32 {
	if clustertest.Verify {
		return 60
	}
	return 3
}

// Under each policy, an elastic task of 32 GPUs gives exactly what another task needs: the
// task is admitted at once and its pods run once the terminating pods have ended, and all
// other pods of the elastic task stay.
func TestUnderEachPolicy(t *testing.T) {
	clustertest.OnlyVerify(t)
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			p.apply(t)
			t.Run("scenarios", func(t *testing.T) {
				t.Run("task of the lending team", func(t *testing.T) {
					t.Parallel()
					l := newLab(t, 4)
					training, other := l.team("training", 8, nil), l.team("other", 24, nil)
					l.yields(l.elastic(training, "train", trainingClass, steps(grace())), other, trainingClass)
				})
				t.Run("task of the same team", func(t *testing.T) {
					t.Parallel()
					l := newLab(t, 4)
					training := l.team("training", 32, nil)
					l.yields(l.elastic(training, "train", trainingClass, steps(grace())), training, inferenceClass)
				})
				t.Run("team without preemption", func(t *testing.T) {
					t.Parallel()
					l := newLab(t, 4)
					training := l.team("training", 32, func(spec *v1alpha1.ComputeAllocationSpec) { spec.Preemption.WithinTeam = v1alpha1.PreemptNever })
					l.yields(l.elastic(training, "train", trainingClass, steps(grace())), training, trainingClass)
				})
			})
		})
	}
}

// yields checks that a job of up to 32 pods gives 8 to a task of a team and no more.
func (l *lab) yields(e *v1alpha1.ElasticJob, team, class string) {
	l.Helper()
	l.size(e, 32, soon)
	before := l.running(e, 32, soon)
	task := l.submit(team, "inference", class, 8)
	admitted := l.admitted(task, soon)
	began := time.Now()
	l.size(e, 24, soon)
	l.taskRuns(task, 8, time.Duration(e.Spec.ElasticPolicy.GracefulShutdownTimeoutInSeconds+5)*time.Second)
	l.Logf("admitted after %s, runs %s later", admitted, time.Since(began))
	for increment, uids := range l.running(e, 24, soon) {
		if diff := cmp.Diff(before[increment], uids); diff != "" {
			l.Errorf("pods of increment %s changed (-before +after):\n%s", increment, diff)
		}
	}
	if l.refresh(e); e.Status.Replicas != 24 || e.Status.State != v1alpha1.ElasticRunning {
		l.Errorf("size %d, %s", e.Status.Replicas, e.Status.State)
	}
	last := e.Status.ScaleEvents[len(e.Status.ScaleEvents)-1]
	if last.From != 32 || last.To != 24 || last.ForWorkload != l.workloadOf(task) || last.Cause != v1alpha1.ScalePreempted && last.Cause != v1alpha1.ScaleWithdrawn {
		l.Errorf("last event %+v", last)
	}
}

// workloadOf returns the UID of the Workload of a Job.
func (l *lab) workloadOf(job *batchv1.Job) types.UID {
	l.Helper()
	for _, w := range l.workloads(job.Namespace) {
		if owner := metav1.GetControllerOf(&w); owner != nil && owner.UID == job.UID {
			return w.UID
		}
	}
	return ""
}

// taskRuns waits until n pods of a Job run.
func (l *lab) taskRuns(job *batchv1.Job, n int, limit time.Duration) {
	l.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var list corev1.PodList
		if err := l.Client.List(l.Context(), &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			l.Fatal(err)
		}
		count := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				count++
			}
		}
		if count == n {
			return
		}
		if time.Since(began) > limit {
			l.Fatalf("%d pods of %s run after %s, want %d\n%s", count, job.Name, limit, n, l.report(job.Namespace))
		}
	}
}

// The minimum runs on nodes of the pool that it demands, and growth on those of the lowest
// price that have room, whatever the order of the pools.
func TestGrowthPrefersTheCheapestPool(t *testing.T) {
	reserved, spot := newLab(t, 1), newLab(t, 1)
	clusterPolicy{v1alpha1.TaskRanking, v1alpha1.IdleFirstComeFirstServe}.apply(t)
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
		_, err := controllerutil.CreateOrUpdate(ctx, reserved.Client, policy, func() error {
			price := func(pool, own string) v1alpha1.HourlyPrice {
				return v1alpha1.HourlyPrice{Pool: pool, Resource: string(gpu), From: "2026-01-01", Own: own}
			}
			policy.Spec.Prices = &v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{price(reserved.pool, "4"), price(spot.pool, "1.50")}}
			return nil
		})
		return err
	})
	team := reserved.team("a", 8, func(spec *v1alpha1.ComputeAllocationSpec) {
		spec.Quota = append(spec.Quota, v1alpha1.QuotaRow{InstanceType: spot.pool, Quantities: v1alpha1.Quantities{Accelerators: ptr.To[int64](8)}})
	})
	const label = "node.kubernetes.io/instance-type"
	pools := func(e *v1alpha1.ElasticJob) map[string]string { // by increment
		var list corev1.PodList
		if err := reserved.Client.List(t.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name}); err != nil {
			t.Fatal(err)
		}
		on := map[string]string{}
		for _, p := range list.Items {
			on[p.Labels[v1alpha1.LabelElasticIncrement]] = p.Spec.NodeSelector[label]
		}
		return on
	}
	template := pods(4)
	template.Spec.NodeSelector = map[string]string{label: reserved.pool}
	pinned := reserved.elasticOf(team, "pinned", trainingClass, v1alpha1.ElasticPolicy{MinReplicas: 1, MaxReplicas: 2, ReplicaIncrementStep: ptr.To[int32](1), MinStablePeriodSeconds: 1, BackoffMaxSeconds: 5}, template)
	reserved.size(pinned, 2, soon)
	reserved.running(pinned, 2, soon)
	if diff := cmp.Diff(map[string]string{"0": reserved.pool, "1": reserved.pool}, pools(pinned)); diff != "" {
		t.Errorf("pools of a task whose template names one (-want +got):\n%s", diff)
	}
	if err := reserved.Client.Delete(t.Context(), pinned); err != nil {
		t.Fatal(err)
	}

	e := &v1alpha1.ElasticJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(team), Name: "train", Labels: labels(team, trainingClass)},
		Spec: v1alpha1.ElasticJobSpec{
			ElasticPolicy:    v1alpha1.ElasticPolicy{MinReplicas: 1, MaxReplicas: 4, ReplicaIncrementStep: ptr.To[int32](1), FaultyScaleDownTimeoutInSeconds: 30, MinStablePeriodSeconds: 1, BackoffMaxSeconds: 5},
			BaseNodeSelector: map[string]string{label: reserved.pool}, Template: pods(4),
		},
	}
	reserved.create(e)
	reserved.size(e, 4, soon)
	reserved.running(e, 4, soon)
	if diff := cmp.Diff(map[string]string{"0": reserved.pool, "1": spot.pool, "2": spot.pool, "3": reserved.pool}, pools(e)); diff != "" {
		t.Errorf("pools of the increments (-want +got):\n%s", diff)
	}
	e.Spec.BaseNodeSelector = nil
	if err := reserved.Client.Update(t.Context(), e); err == nil || !strings.Contains(err.Error(), "baseNodeSelector cannot be changed") {
		t.Errorf("a change of baseNodeSelector: %v", err)
	}
}
