package behavior_test

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// team is one allocation of a story.
type team struct {
	*story
	role  string // what the story calls it
	name  string
	tasks []*task
}

// term is one line of what a team is given.
type term func(spec *v1alpha1.ComputeAllocationSpec, pool string)

func gpus(n int64) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Quota = []v1alpha1.QuotaRow{{InstanceType: pool, Amounts: v1alpha1.Amounts{Accelerators: &n}}}
	}
}

func instances(n int64) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Quota = []v1alpha1.QuotaRow{{InstanceType: pool, Amounts: v1alpha1.Amounts{Instances: &n}}}
	}
}

func borrowsPercent(n int32) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.BorrowLimitPercent = &n }
}

// borrowsGPUs is an absolute limit, also where the team has no quota.
func borrowsGPUs(n int64) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
		spec.Sharing.BorrowLimits = []v1alpha1.QuotaRow{{InstanceType: pool, Amounts: v1alpha1.Amounts{Accelerators: &n}}}
	}
}

func borrowsAll(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.Unlimited = true }

func shares(strategy v1alpha1.SharingStrategy) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Sharing.Strategy = strategy }
}

func weighs(n int32) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.FairShareWeight = n }
}

func neverPreemptsWithin(spec *v1alpha1.ComputeAllocationSpec, _ string) {
	spec.Preemption.WithinTeam = v1alpha1.PreemptNever
}

func activation(a v1alpha1.Activation) term {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Activation = a }
}

// team makes a team, and waits until its queue admits tasks.
func (s *story) team(role string, terms ...term) *team {
	s.t.Helper()
	m := &team{story: s, role: role, name: clustertest.Name(role)}
	allocation := m.allocation()
	for _, agree := range terms {
		agree(&allocation.Spec, s.pool)
	}
	s.teams = append(s.teams, m)
	// The pool's nodes may be too new for the console's cache: then it says so,
	// and looks again when it has seen them.
	if err := s.cluster.Client.Create(s.t.Context(), allocation); err != nil {
		s.t.Fatal(err)
	}
	s.await(func() error {
		var now v1alpha1.ComputeAllocation
		if err := s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Name: m.name}, &now); err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive} {
			if !meta.IsStatusConditionTrue(now.Status.Conditions, condition) {
				return fmt.Errorf("%s of %s: %+v", condition, role, meta.FindStatusCondition(now.Status.Conditions, condition))
			}
		}
		return nil
	})
	return m
}

// agrees changes what the team is given, and waits until Kueue goes by it: it
// has then looked at the generation that the controller wrote.
func (m *team) agrees(terms ...term) {
	m.t.Helper()
	var want int64
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		allocation := m.allocation()
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKeyFromObject(allocation), allocation); err != nil {
			return err
		}
		for _, agree := range terms {
			agree(&allocation.Spec, m.pool)
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
			return fmt.Errorf("generation %d of %d of %s was looked at", allocation.Status.ObservedGeneration, want, m.role)
		}
		var queue kueue.ClusterQueue
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKey{Name: m.queueName()}, &queue); err != nil {
			return err
		}
		if active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive); active == nil || active.ObservedGeneration != queue.Generation {
			return fmt.Errorf("Kueue has not seen generation %d of %s's queue: %+v", queue.Generation, m.role, active)
		}
		return nil
	})
}

// leave deletes the team's tasks and its allocation, and requeues what runs.
func (m *team) leave(ctx context.Context) {
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

// queue is the team's ClusterQueue as Kueue last reported it.
func (m *team) queue() (*kueue.ClusterQueue, error) {
	var queue kueue.ClusterQueue
	return &queue, watched.Get(m.t.Context(), client.ObjectKey{Name: m.queueName()}, &queue)
}

// held is what Kueue says that admitted tasks hold, and how much of it is
// borrowed; what is reserved for a task that is about to start counts too.
func (m *team) held() (held, borrowed int64, err error) {
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
					held, borrowed = max(held, r.Total.Value()), max(borrowed, r.Borrowed.Value())
				}
			}
		}
	}
	return held, borrowed, nil
}

// holds waits until the team holds so many GPUs, so many of them borrowed.
func (m *team) holds(want, wantBorrowed int64) {
	m.t.Helper()
	m.await(func() error {
		held, borrowed, err := m.held()
		if err == nil && (held != want || borrowed != wantBorrowed) {
			err = fmt.Errorf("%s holds %d GPUs, %d of them borrowed; want %d and %d", m.role, held, borrowed, want, wantBorrowed)
		}
		return err
	})
}
