package behavior_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Four of eight GPUs are not allocated. While they are lent, a team that is
// created later gets them as its nominal quota, and reclaims them one task a
// second.
func unallocatedIsLent(t *testing.T, p *policy) {
	s := newScenario(t, 1, 8)
	early := s.newTeam("early", gpus(4), borrowLimitGPUs(4), fairShareWeight(10))
	scans := early.submitEach("scan", 9, "")
	early.uses(4, 0)

	p.apply(v1alpha1.TaskRanking, true)
	s.waitForUnallocated(4)
	early.uses(8, 4)

	late := s.newTeam("late", gpus(4), fairShareWeight(10))
	s.waitForUnallocated(0)
	early.uses(8, 4) // nothing is preempted until the new team submits a task
	for _, k := range admittedTasks(scans) {
		k.neverEvicted()
	}
	all := late.submit("all", 4, 0)
	all.isAdmitted()
	late.uses(4, 0)
	early.uses(4, 0)
	late.submit("more", 1, 0).isPending("WaitingForQuota", "1 more needed")

	p.apply(v1alpha1.TaskRanking, false)
	s.await(func() error {
		var cohort kueue.Cohort
		err := s.cluster.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.Cohort}, &cohort)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return fmt.Errorf("get the Cohort: got %v, want not found", err)
	})
	all.neverEvicted()
	late.uses(4, 0)
}

// waitForUnallocated waits until the Cohort has a nominal quota of want GPUs in
// the scenario's pool.
func (s *scenario) waitForUnallocated(want int64) {
	s.t.Helper()
	s.await(func() error {
		var cohort kueue.Cohort
		if err := s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Name: desired.DefaultNaming.Cohort}, &cohort); err != nil {
			return err
		}
		got := int64(0)
		for _, group := range cohort.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				if string(flavor.Name) != s.pool {
					continue
				}
				for _, r := range flavor.Resources {
					if r.Name == gpu {
						got += r.NominalQuota.Value()
					}
				}
			}
		}
		if got != want {
			return fmt.Errorf("nominal quota of the Cohort in the pool: got %d GPUs, want %d", got, want)
		}
		return nil
	})
}
