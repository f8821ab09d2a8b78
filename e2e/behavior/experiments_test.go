package behavior_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A hundred instances: 60 for one experiment, and 40 for the other, which uses
// 25 at first.
func twoExperiments(t *testing.T) {
	s := newScenario(t, 100, 1)
	one := s.newTeam("prodexp1", instances(60), borrowLimitPercent(25))
	two := s.newTeam("prodexp2", instances(40), borrowLimitPercent(25))

	two.submit("first", 25, 0).isAdmitted()
	jobs := map[string]*task{
		"a": one.submit("a", 20, 80),
		"b": one.submit("b", 20, 50),
		"c": one.submit("c", 20, 30),
	}
	for _, k := range jobs {
		k.isAdmitted()
	}
	d := one.submit("d", 15, 10)
	d.isAdmitted()
	one.uses(75, 15)
	two.uses(25, 0)
	one.runPods(75)
	two.runPods(25)

	// A job of priority 90 that requests 15 preempts only the lowest priority.
	urgent := one.submit("urgent", 15, 90)
	urgent.isAdmitted()
	d.isPreempted("InClusterQueue")
	one.uses(75, 15)
	urgent.finish()
	d.isReadmitted()
	one.uses(75, 15)

	// The other experiment requests its whole quota of 40.
	second := two.submit("second", 15, 0)
	second.isAdmitted()
	d.isPreempted("InCohortReclamation")
	d.isPending("WaitingForQuota", "15 more needed")
	one.uses(60, 0)
	two.uses(40, 0)
	one.runPods(60)
	two.runPods(40)

	second.finish()
	d.isReadmitted()
	one.uses(75, 15)
	for _, k := range jobs {
		k.neverEvicted()
	}
}

// runPods waits until want pods of the team's tasks are ready. Where instances
// have one GPU, each pod runs on an instance of its own.
func (m *team) runPods(want int32) {
	m.t.Helper()
	m.await(func() error {
		var jobs batchv1.JobList
		if err := watched.List(m.t.Context(), &jobs, client.InNamespace(m.namespace())); err != nil {
			return err
		}
		ready := int32(0)
		for i := range jobs.Items {
			if n := jobs.Items[i].Status.Ready; n != nil && jobs.Items[i].DeletionTimestamp == nil {
				ready += *n
			}
		}
		if ready != want {
			return fmt.Errorf("%s: got %d ready pods, want %d", m.role, ready, want)
		}
		return nil
	})
}
