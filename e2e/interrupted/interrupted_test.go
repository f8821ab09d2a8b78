package interrupted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// setPolicy creates or updates the cluster policy with spec.
func setPolicy(t *testing.T, spec v1alpha1.ClusterPolicySpec) {
	t.Helper()
	c := clustertest.Get(t).Client
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		_, err := controllerutil.CreateOrUpdate(ctx, c, policy, func() error {
			policy.Spec = spec
			return nil
		})
		return err
	})
}

func policyOf(classes map[string]int32, share bool, pools ...v1alpha1.Pool) v1alpha1.ClusterPolicySpec {
	spec := v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.TaskRanking, Enforcement: v1alpha1.EnforcementNone, Pools: pools}
	for _, name := range []string{"a", "b", "c"} {
		if weight, ok := classes[name]; ok {
			spec.PriorityClasses = append(spec.PriorityClasses, v1alpha1.PriorityClass{Name: name, Weight: &weight})
		}
	}
	spec.IdleCompute.ShareUnallocated = share
	return spec
}

// fullSpec returns an allocation that uses every feature.
func fullSpec() v1alpha1.ComputeAllocationSpec {
	two, one := int64(2), int64(1)
	return v1alpha1.ComputeAllocationSpec{
		Quota: []v1alpha1.QuotaRow{
			{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &two}},
			{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Instances: &one}},
		},
		Members:          []v1alpha1.Member{{Kind: "Group", Name: "makers"}},
		NamespaceCeiling: true, DefaultQueue: true, FairShareWeight: 7,
	}
}

func create(t *testing.T, team string, spec v1alpha1.ComputeAllocationSpec) {
	t.Helper()
	if err := clustertest.Get(t).Client.Create(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: spec}); err != nil {
		t.Fatal(err)
	}
}

// deleteTeam deletes a team without an interruption.
func deleteTeam(t *testing.T, team string) {
	t.Helper()
	if err := clustertest.Get(t).Client.Delete(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	newControllers(t, team, 0, false, noKueue).run(t, isDeleted(t, team))
}

// isDeleted returns a check that returns nil once the team's allocation is deleted.
func isDeleted(t *testing.T, team string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the allocation is not deleted"), err)
	}
}

func TestCreateAllocation(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		team := clustertest.Name("created")
		create(t, team, fullSpec())
		calls := runInterrupted(t, team, breakAt, after, noKueue, allocationReady(t, team))
		state := stateOf(t, team)
		deleteTeam(t, team)
		return state, calls
	})
}

// The first status of an allocation has WithinCapacity too if it was computed
// before: each further patch is a thousand patches for a thousand teams.
func TestFirstStatusHasWithinCapacity(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	team := clustertest.Name("first")
	create(t, team, fullSpec())
	defer deleteTeam(t, team)
	c := newControllers(t, team, 0, false, noKueue)
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: team}}
	var allocation v1alpha1.ComputeAllocation
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		for _, reconcile := range []func(context.Context, ctrl.Request) (ctrl.Result, error){
			c.Pools.Reconcile, c.Cohort.Reconcile, c.Capacity.Reconcile, c.Allocations.Reconcile,
		} {
			if _, err := reconcile(ctx, request); err != nil {
				return err
			}
		}
		if err := clustertest.Get(t).Client.Get(ctx, request.NamespacedName, &allocation); err != nil {
			return err
		}
		if meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady) == nil {
			return errors.New("the allocation has no condition Ready")
		}
		return nil
	})
	if meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionWithinCapacity) == nil {
		t.Errorf("got conditions %v, want %s among them", allocation.Status.Conditions, v1alpha1.ConditionWithinCapacity)
	}
}

// TestReduceAllocation reduces the quota of a team, and removes its members, its
// namespace ceiling and its default queue.
func TestReduceAllocation(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		team := clustertest.Name("reduced")
		create(t, team, fullSpec())
		newControllers(t, team, 0, false, noKueue).run(t, allocationReady(t, team))
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var allocation v1alpha1.ComputeAllocation
			if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
				return err
			}
			allocation.Spec = v1alpha1.ComputeAllocationSpec{Quota: fullSpec().Quota[:1], Activation: v1alpha1.Hold}
			return clustertest.Get(t).Client.Update(ctx, &allocation)
		})
		calls := runInterrupted(t, team, breakAt, after, noKueue, allocationReady(t, team))
		state := stateOf(t, team)
		deleteTeam(t, team)
		return state, calls
	})
}

func TestDeleteAllocation(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		team := clustertest.Name("deleted")
		create(t, team, fullSpec())
		newControllers(t, team, 0, false, noKueue).run(t, allocationReady(t, team))
		if err := clustertest.Get(t).Client.Delete(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}); err != nil {
			t.Fatal(err)
		}
		calls := runInterrupted(t, team, breakAt, after, noKueue, isDeleted(t, team))
		return stateOf(t, team), calls
	})
}

// TestChangePolicy covers everything that a policy changes outside Kueue's
// configuration: it changes the weight of one priority class, adds and removes
// others, adds a pool, and lends unallocated quota.
func TestChangePolicy(t *testing.T) {
	grouped := v1alpha1.Pool{Name: "grouped", Match: v1alpha1.PoolMatch{InstanceFamily: "ml.c5"}}
	before := policyOf(map[string]int32{"a": 10, "b": 20}, false)
	after := policyOf(map[string]int32{"a": 30, "c": 5}, true, grouped)
	team := clustertest.Name("ranked")
	setPolicy(t, before)
	create(t, team, v1alpha1.ComputeAllocationSpec{Quota: fullSpec().Quota[:1]})
	settled := func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		var failed []error
		for _, name := range []string{v1alpha1.ConditionPriorityClasses, v1alpha1.ConditionPools, v1alpha1.ConditionShareUnallocated} {
			failed = append(failed, conditionTrue(policy.Status.Conditions, name, policy.Generation))
		}
		return errors.Join(append(failed, allocationReady(t, team)(ctx))...)
	}
	newControllers(t, team, 0, false, noKueue).run(t, settled)
	for i := range 3 {
		submit(t, team, fmt.Sprintf("task-%d", i), "a-priority", 10)
	}
	interruptEveryCall(t, func(t *testing.T, breakAt int64, lost bool) (string, int64) {
		setPolicy(t, before)
		newControllers(t, team, 0, false, noKueue).run(t, settled)
		setPolicy(t, after)
		calls := runInterrupted(t, team, breakAt, lost, noKueue, settled)
		var tasks kueue.WorkloadList
		if err := clustertest.Get(t).Client.List(t.Context(), &tasks, client.InNamespace("hyperpod-ns-"+team)); err != nil {
			t.Fatal(err)
		}
		state := stateOf(t, team)
		for _, task := range tasks.Items {
			state += fmt.Sprintf("task %s has priority %d\n", task.Name, *task.Spec.Priority)
		}
		return state, calls
	})
	for _, name := range []string{"task-0", "task-1", "task-2"} {
		_ = clustertest.Get(t).Client.Delete(t.Context(), &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: name}})
	}
	deleteTeam(t, team)
}

// submit creates a Workload that requests more than the team's quota, so that it
// stays pending.
func submit(t *testing.T, team, name, class string, priority int32) {
	t.Helper()
	workload := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: name}}
	workload.Spec.QueueName = kueue.LocalQueueName("hyperpod-ns-" + team + "-localqueue")
	workload.Spec.Priority = &priority
	workload.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(class)
	workload.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("100")},
			Limits:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("100")},
		}}},
	}}}}
	if err := clustertest.Get(t).Client.Create(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
}
