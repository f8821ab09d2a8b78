package behavior_test

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// team is one ComputeAllocation of a scenario.
type team struct {
	*scenario
	role  string // the name in the scenario
	name  string
	tasks []*task
}

// option sets a part of a team's allocation.
type option func(spec *v1alpha1.ComputeAllocationSpec, pool string)

func gpus(n int64) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Quota = []v1alpha1.QuotaRow{{InstanceType: pool, Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	}
}

func instances(n int64) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Quota = []v1alpha1.QuotaRow{{InstanceType: pool, Quantities: v1alpha1.Quantities{Instances: &n}}}
	}
}

func borrowLimitPercent(n int32) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.BorrowLimitPercent = &n }
}

// borrowLimitGPUs sets an absolute borrowing limit, which also applies to a team
// without quota.
func borrowLimitGPUs(n int64) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Sharing.BorrowLimits = []v1alpha1.QuotaRow{{InstanceType: pool, Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	}
}

func borrowUnlimited(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.Unlimited = true }

func sharing(strategy v1alpha1.SharingStrategy) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.Strategy = strategy }
}

func fairShareWeight(n int32) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.FairShareWeight = n }
}

func neverPreemptWithinTeam(spec *v1alpha1.ComputeAllocationSpec, _ string) {
	spec.Preemption.WithinTeam = v1alpha1.PreemptNever
}

func activation(a v1alpha1.Activation) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Activation = a }
}

// newTeam creates a team and waits until its ClusterQueue is active.
func (s *scenario) newTeam(role string, options ...option) *team {
	s.t.Helper()
	m := &team{scenario: s, role: role, name: clustertest.Name(role)}
	allocation := m.allocation()
	for _, set := range options {
		set(&allocation.Spec, s.pool)
	}
	s.teams = append(s.teams, m)
	// The pool's nodes may not be in the console's cache yet. The controller then
	// reports so in the status and reconciles when they appear.
	if err := s.cluster.Client.Create(s.t.Context(), allocation); err != nil {
		s.t.Fatal(err)
	}
	s.await(func() error {
		var current v1alpha1.ComputeAllocation
		if err := s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Name: m.name}, &current); err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive} {
			if !meta.IsStatusConditionTrue(current.Status.Conditions, condition) {
				return fmt.Errorf("%s: condition %s: got %+v, want True", role, condition, meta.FindStatusCondition(current.Status.Conditions, condition))
			}
		}
		return nil
	})
	return m
}

// update changes the team's allocation and waits until Kueue has applied it, that
// is, has observed the generation of the ClusterQueue that the controller wrote.
func (m *team) update(options ...option) {
	m.t.Helper()
	var want int64
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		allocation := m.allocation()
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKeyFromObject(allocation), allocation); err != nil {
			return err
		}
		for _, set := range options {
			set(&allocation.Spec, m.pool)
		}
		err := m.cluster.Client.Update(m.t.Context(), allocation)
		want = allocation.Generation
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.await(func() error {
		allocation := m.allocation()
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKeyFromObject(allocation), allocation); err != nil {
			return err
		}
		if allocation.Status.ObservedGeneration != want {
			return fmt.Errorf("%s: got observed generation %d, want %d", m.role, allocation.Status.ObservedGeneration, want)
		}
		var queue kueue.ClusterQueue
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKey{Name: m.queueName()}, &queue); err != nil {
			return err
		}
		if active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive); active == nil || active.ObservedGeneration != queue.Generation {
			return fmt.Errorf("ClusterQueue of %s: got condition %+v, want Active at generation %d", m.role, active, queue.Generation)
		}
		return nil
	})
}

// delete deletes the team's tasks and its allocation. The annotation lets the
// controller drain the queue, which requeues running tasks.
func (m *team) delete(ctx context.Context) {
	_ = m.cluster.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(m.namespace()), client.PropagationPolicy(metav1.DeletePropagationBackground))
	allocation := m.allocation()
	_ = m.cluster.Client.Patch(ctx, allocation, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"annotations": {"kuota.dev/drain": "true"}}}`)))
	_ = m.cluster.Client.Delete(ctx, m.allocation())
}

func (m *team) allocation() *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
}

func (m *team) namespace() string { return desired.DefaultNaming.Namespace(m.name) }
func (m *team) queueName() string { return desired.DefaultNaming.ClusterQueue(m.name) }

// queue returns the team's ClusterQueue from the cache.
func (m *team) queue() (*kueue.ClusterQueue, error) {
	var queue kueue.ClusterQueue
	return &queue, watched.Get(m.t.Context(), client.ObjectKey{Name: m.queueName()}, &queue)
}

// usage returns the GPUs that the team uses in the scenario's pool according to
// Kueue, and how many of them are borrowed. Reserved quota of workloads that are
// not admitted yet counts too.
func (m *team) usage() (total, borrowed int64, err error) {
	queue, err := m.queue()
	if err != nil {
		return 0, 0, err
	}
	for _, flavors := range [][]kueue.FlavorUsage{queue.Status.FlavorsUsage, queue.Status.FlavorsReservation} {
		for _, flavor := range flavors {
			if string(flavor.Name) != m.pool {
				continue
			}
			for _, r := range flavor.Resources {
				if r.Name == gpu {
					total, borrowed = max(total, r.Total.Value()), max(borrowed, r.Borrowed.Value())
				}
			}
		}
	}
	return total, borrowed, nil
}

// uses waits until the team uses want GPUs, wantBorrowed of them borrowed.
func (m *team) uses(want, wantBorrowed int64) {
	m.t.Helper()
	m.await(func() error {
		total, borrowed, err := m.usage()
		if err == nil && (total != want || borrowed != wantBorrowed) {
			err = fmt.Errorf("%s: got %d GPUs used, %d of them borrowed; want %d and %d", m.role, total, borrowed, want, wantBorrowed)
		}
		return err
	})
}
