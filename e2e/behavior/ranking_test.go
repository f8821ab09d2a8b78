package behavior_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func rankingAndFirstCome(t *testing.T, p *policy) {
	low, high := ranked(clustertest.Name("low"), 10), ranked(clustertest.Name("high"), 90)
	p.says(v1alpha1.FirstComeFirstServe, false, low, high)
	s := begin(t, 1, 1)
	team := s.team("team", gpus(1))

	// Although the team would have its lower tasks pushed out, none is.
	first := team.submitEach("first", 1, classObject(low))[0]
	first.runs()
	second := team.submitEach("second", 1, classObject(low))[0]
	second.aSecondLater()
	third := team.submitEach("third", 1, classObject(high))[0]
	for _, k := range []*task{second, third} {
		k.waits("WaitingForQuota", "1 more needed")
	}
	first.undisturbed()
	first.ends()
	second.runs()
	third.waits("WaitingForQuota", "1 more needed")

	// Ranked, the waiting one of the high class comes at once.
	p.says(v1alpha1.TaskRanking, false, low, high)
	third.runs()
	second.preempted("InClusterQueue")
	fourth := team.submitEach("fourth", 1, classObject(low))[0]
	fourth.waits("WaitingForQuota", "1 more needed")
	fifth := team.submitEach("fifth", 1, classObject(high))[0]
	fifth.waits("WaitingForQuota", "1 more needed")
	third.ends()
	fifth.runs()
	team.holds(1, 0)
}

// Sixteen tasks run, half of it in borrowed room, and 120 of the same class
// wait. Kueue gives them their new priority one by one; one that has it
// already would push out one that has not.
func rankedAnew(t *testing.T, p *policy) {
	name := clustertest.Name("dev")
	dev := func(weight int32) v1alpha1.PriorityClass { return ranked(name, weight) }
	class := classObject(dev(10))
	p.says(v1alpha1.TaskRanking, false, dev(10))
	s := begin(t, 2, 8)
	s.team("lender", gpus(8), weighs(10))
	teams := []*team{
		s.team("one", gpus(4), borrowsGPUs(4), weighs(10)),
		s.team("two", gpus(4), borrowsGPUs(4), weighs(10)),
	}
	for _, m := range teams {
		m.submitEach("scan", 68, class)
	}
	for _, m := range teams {
		m.holds(8, 4)
		s.prioritiesAre(m.tasks, 10)
	}

	changes := []struct {
		prioritization v1alpha1.TaskPrioritization
		weight, want   int32
	}{
		{v1alpha1.TaskRanking, 20, 20},
		{v1alpha1.FirstComeFirstServe, 20, 0},
		{v1alpha1.TaskRanking, 30, 30},
	}
	if !verify {
		changes = changes[:1]
	}
	for i, change := range changes {
		p.says(change.prioritization, false, dev(change.weight))
		for _, m := range teams {
			s.prioritiesAre(m.tasks, change.want)
			m.preemptsAgain(change.prioritization)
		}
		// Once Kueue has looked at a task that came after all this, it has
		// looked at the others with their new priorities too.
		for _, m := range teams {
			m.submitEach(fmt.Sprintf("after-%d", i), 1, class)[0].waits("WaitingForQuota", "1 more needed")
		}
		for _, m := range teams {
			m.holds(8, 4)
			if moved := preemptedOnes(t, m.tasks); len(moved) > 0 {
				t.Errorf("change %d, to %s at %d: %d tasks of %s were preempted, such as %s: %s", i, change.prioritization, change.weight, len(moved), m.role, moved[0].name, moved[0].describe())
			}
		}
	}
}

// preemptedOnes lists those of some tasks that were ever preempted.
func preemptedOnes(t *testing.T, tasks []*task) (moved []*task) {
	t.Helper()
	for _, k := range tasks {
		w, err := k.workload()
		if err != nil {
			t.Fatal(err)
		}
		if meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted) != nil || evictions(w) > 0 {
			moved = append(moved, k)
		}
	}
	return moved
}

// prioritiesAre waits until every task has the value of its class.
func (s *story) prioritiesAre(tasks []*task, want int32) {
	s.t.Helper()
	s.await(func() error {
		for _, k := range tasks {
			w, err := k.workload()
			if err != nil {
				return err
			}
			if w.Spec.Priority == nil || *w.Spec.Priority != want {
				return fmt.Errorf("the priority of %s is not %d yet", k.name, want)
			}
		}
		return nil
	})
}

// preemptsAgain waits until Kueue goes by the queue's preemption as it is
// after a change of the ranking.
func (m *team) preemptsAgain(prioritization v1alpha1.TaskPrioritization) {
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
			return fmt.Errorf("%s preempts within itself %s, want %s; %s", m.role, got, want, describe(active))
		}
		return nil
	})
}
