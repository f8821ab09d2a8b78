package behavior_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func rankingAndFirstCome(t *testing.T, p *policy) {
	low, high := priorityClass(clustertest.Name("low"), 10), priorityClass(clustertest.Name("high"), 90)
	p.apply(v1alpha1.FirstComeFirstServe, false, low, high)
	s := newScenario(t, 1, 1)
	team := s.newTeam("team", gpus(1))

	// The allocation lets the team preempt its lower priorities, but first come,
	// first served preempts nothing.
	first := team.submitEach("first", 1, classObject(low))[0]
	first.isAdmitted()
	second := team.submitEach("second", 1, classObject(low))[0]
	second.waitForNextSecond()
	third := team.submitEach("third", 1, classObject(high))[0]
	for _, k := range []*task{second, third} {
		k.isPending("WaitingForQuota", "1 more needed")
	}
	first.neverEvicted()
	first.finish()
	second.isAdmitted()
	third.isPending("WaitingForQuota", "1 more needed")

	// Under ranking the pending task of the high class preempts at once.
	p.apply(v1alpha1.TaskRanking, false, low, high)
	third.isAdmitted()
	second.isPreempted("InClusterQueue")
	fourth := team.submitEach("fourth", 1, classObject(low))[0]
	fourth.isPending("WaitingForQuota", "1 more needed")
	fifth := team.submitEach("fifth", 1, classObject(high))[0]
	fifth.isPending("WaitingForQuota", "1 more needed")
	third.finish()
	fifth.isAdmitted()
	team.uses(1, 0)
}

// Sixteen tasks run, half of them on borrowed quota, and 120 of the same class
// are pending. Kueue sets their new priority one by one. A pending task with the
// new priority must not preempt a running one that still has the old priority.
func changedWeight(t *testing.T, p *policy) {
	name := clustertest.Name("dev")
	dev := func(weight int32) v1alpha1.PriorityClass { return priorityClass(name, weight) }
	class := classObject(dev(10))
	p.apply(v1alpha1.TaskRanking, false, dev(10))
	s := newScenario(t, 2, 8)
	s.newTeam("lender", gpus(8), fairShareWeight(10))
	teams := []*team{
		s.newTeam("one", gpus(4), borrowLimitGPUs(4), fairShareWeight(10)),
		s.newTeam("two", gpus(4), borrowLimitGPUs(4), fairShareWeight(10)),
	}
	for _, m := range teams {
		m.submitEach("scan", 68, class)
	}
	for _, m := range teams {
		m.uses(8, 4)
		s.waitForPriority(m.tasks, 10)
	}

	for i, change := range []struct {
		prioritization v1alpha1.TaskPrioritization
		weight, want   int32
	}{
		{v1alpha1.TaskRanking, 20, 20},
		{v1alpha1.FirstComeFirstServe, 20, 0},
		{v1alpha1.TaskRanking, 30, 30},
	} {
		p.apply(change.prioritization, false, dev(change.weight))
		for _, m := range teams {
			s.waitForPriority(m.tasks, change.want)
			m.waitForPreemptionPolicy(change.prioritization)
		}
		// Once Kueue has tried a task that was submitted after the change, it has
		// tried the others with their new priorities too.
		for _, m := range teams {
			m.submitEach(fmt.Sprintf("after-%d", i), 1, class)[0].isPending("WaitingForQuota", "1 more needed")
		}
		for _, m := range teams {
			m.uses(8, 4)
			if preempted := preemptedTasks(t, m.tasks); len(preempted) > 0 {
				t.Errorf("change %d, to %s at %d: got %d preempted tasks of %s, want 0; the first is %s: %s", i, change.prioritization, change.weight, len(preempted), m.role, preempted[0].name, preempted[0].describe())
			}
		}
	}
}

// preemptedTasks returns those of tasks that were ever preempted or evicted.
func preemptedTasks(t *testing.T, tasks []*task) (preempted []*task) {
	t.Helper()
	for _, k := range tasks {
		w, err := k.workload()
		if err != nil {
			t.Fatal(err)
		}
		if meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted) != nil || evictions(w) > 0 {
			preempted = append(preempted, k)
		}
	}
	return preempted
}

// waitForPriority waits until every task has priority want.
func (s *scenario) waitForPriority(tasks []*task, want int32) {
	s.t.Helper()
	s.await(func() error {
		for _, k := range tasks {
			w, err := k.workload()
			if err != nil {
				return err
			}
			if w.Spec.Priority == nil || *w.Spec.Priority != want {
				return fmt.Errorf("%s: got priority %v, want %d", k.name, ptr.Deref(w.Spec.Priority, 0), want)
			}
		}
		return nil
	})
}

// waitForPreemptionPolicy waits until Kueue has applied the preemption policy
// that the prioritization requires to the team's ClusterQueue.
func (m *team) waitForPreemptionPolicy(prioritization v1alpha1.TaskPrioritization) {
	m.t.Helper()
	want := kueue.PreemptionPolicyLowerPriority
	if prioritization == v1alpha1.FirstComeFirstServe {
		want = kueue.PreemptionPolicyNever
	}
	m.await(func() error {
		var queue kueue.ClusterQueue
		if err := m.cluster.Client.Get(m.t.Context(), client.ObjectKey{Name: m.queueName()}, &queue); err != nil {
			return err
		}
		active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive)
		if got := queue.Spec.Preemption.WithinClusterQueue; got != want || active == nil || active.ObservedGeneration != queue.Generation {
			return fmt.Errorf("%s: got withinClusterQueue %s, want %s; condition %s", m.role, got, want, describe(active))
		}
		return nil
	})
}
