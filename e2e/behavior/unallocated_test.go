package behavior_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Four of eight GPUs are given to nobody. Lent, they belong to whichever team
// is given them later, and are taken back one task a second.
func unallocatedIsLent(t *testing.T, p *policy) {
	s := begin(t, 1, 8)
	early := s.team("early", gpus(4), borrowsGPUs(4), weighs(10))
	scans := early.submitEach("scan", 9, "")
	early.holds(4, 0)

	p.says(v1alpha1.TaskRanking, true)
	s.unallocated(4)
	early.holds(8, 4)

	late := s.team("late", gpus(4), weighs(10))
	s.unallocated(0)
	early.holds(8, 4) // nothing moves until the new team wants it
	for _, k := range admitted(scans) {
		k.undisturbed()
	}
	all := late.submit("all", 4, 0)
	all.runs()
	late.holds(4, 0)
	early.holds(4, 0)
	late.submit("more", 1, 0).waits("WaitingForQuota", "1 more needed")

	p.says(v1alpha1.TaskRanking, false)
	s.await(func() error {
		var cohort kueue.Cohort
		err := s.cluster.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.Cohort}, &cohort)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return fmt.Errorf("the Cohort is still there: %v", err)
	})
	all.undisturbed()
	late.holds(4, 0)
}

// unallocated waits until the Cohort lends so many GPUs of the story's pool.
func (s *story) unallocated(want int64) {
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
			return fmt.Errorf("the Cohort lends %d GPUs of the pool, want %d", got, want)
		}
		return nil
	})
}
