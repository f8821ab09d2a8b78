package behavior_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A hundred instances, 60 for one experiment and 40 for the other, which at
// first uses 25.
func twoExperiments(t *testing.T) {
	s := begin(t, 100, 1)
	one := s.team("prodexp1", instances(60), borrowsPercent(25))
	two := s.team("prodexp2", instances(40), borrowsPercent(25))

	two.submit("first", 25, 0).runs()
	jobs := map[string]*task{
		"a": one.submit("a", 20, 80),
		"b": one.submit("b", 20, 50),
		"c": one.submit("c", 20, 30),
	}
	for _, k := range jobs {
		k.runs()
	}
	d := one.submit("d", 15, 10)
	d.runs()
	one.holds(75, 15)
	two.holds(25, 0)
	one.runPods(75)
	two.runPods(25)

	// A job of 90 that needs 15 stops the least, and no other.
	urgent := one.submit("urgent", 15, 90)
	urgent.runs()
	d.preempted("InClusterQueue")
	one.holds(75, 15)
	urgent.ends()
	d.runsAgain()
	one.holds(75, 15)

	// The other experiment wants its 40.
	second := two.submit("second", 15, 0)
	second.runs()
	d.preempted("InCohortReclamation")
	d.waits("WaitingForQuota", "15 more needed")
	one.holds(60, 0)
	two.holds(40, 0)
	one.runPods(60)
	two.runPods(40)

	second.ends()
	d.runsAgain()
	one.holds(75, 15)
	for _, k := range jobs {
		k.undisturbed()
	}
}

// runPods waits until so many pods of the team's tasks run, each on an
// instance of its own where instances have one GPU.
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
			return fmt.Errorf("%d pods of %s run, want %d", ready, m.role, want)
		}
		return nil
	})
}
