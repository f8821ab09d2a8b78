package behavior_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newDepartment creates a department with a quota of GPUs, and waits until it is applied. It is
// deleted after its teams.
func (s *scenario) newDepartment(role string, quota int64, set func(spec *v1alpha1.DepartmentSpec)) (name string) {
	s.t.Helper()
	name = clustertest.Name(role)
	d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DepartmentSpec{
		Quota:   []v1alpha1.QuotaRow{{InstanceType: s.pool, Quantities: v1alpha1.Quantities{Accelerators: &quota}}},
		Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: true}, FairShareWeight: 10,
	}}
	if set != nil {
		set(&d.Spec)
	}
	if err := s.cluster.Client.Create(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.cluster.Client.Delete(context.Background(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	s.await(func() error {
		if err := s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Name: name}, d); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("department %s: got condition %+v, want True", role, ready)
		}
		return nil
	})
	return name
}

func department(name string) option {
	return func(spec *v1alpha1.ComputeAllocationSpec, _ string) { spec.Department = name }
}

// The teams of a department borrow from each other and from its reserve, and beyond its border
// as much as the limit of the department allows, although more is idle there.
func borrowWithinADepartment(t *testing.T) {
	s := newScenario(t, 2, 8)
	one := int64(1)
	d1 := s.newDepartment("research", 6, func(spec *v1alpha1.DepartmentSpec) {
		spec.Sharing = v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimits: []v1alpha1.QuotaRow{{InstanceType: s.pool, Quantities: v1alpha1.Quantities{Accelerators: &one}}}}
	})
	d2 := s.newDepartment("sales", 8, nil)
	a := s.newTeam("a", gpus(2), borrowUnlimited, department(d1), fairShareWeight(10))
	b := s.newTeam("b", gpus(2), borrowUnlimited, department(d1), fairShareWeight(10))
	c := s.newTeam("c", gpus(8), borrowUnlimited, department(d2), fairShareWeight(10))

	a.submitEach("a", 12, "")
	a.uses(7, 5) // 2 of its own, 2 of b, 2 of the reserve, 1 of others
	b.submitEach("b", 2, "")
	b.uses(2, 0)
	a.uses(5, 3)
	c.submitEach("c", 8, "")
	c.uses(8, 0)
	a.uses(4, 2)
}

// A team above its own quota, but within that of its department, reclaims the reserve that a team
// of another department borrowed.
func reserveIsReclaimed(t *testing.T) {
	s := newScenario(t, 1, 8)
	d1 := s.newDepartment("research", 4, nil)
	d2 := s.newDepartment("sales", 1, nil)
	a := s.newTeam("a", gpus(1), borrowUnlimited, department(d1), fairShareWeight(10))
	c := s.newTeam("c", gpus(1), borrowUnlimited, department(d2), fairShareWeight(10))

	c.submitEach("c", 6, "")
	c.uses(5, 4)
	a.submitEach("a", 4, "")
	a.uses(4, 3)
	c.uses(1, 0)
}

// What a department keeps to itself its teams use, and others do not.
func departmentLendsNothing(t *testing.T) {
	s := newScenario(t, 1, 8)
	d1 := s.newDepartment("research", 4, func(spec *v1alpha1.DepartmentSpec) { spec.Sharing = v1alpha1.Sharing{Strategy: v1alpha1.DontLend} })
	a := s.newTeam("a", gpus(1), borrowUnlimited, department(d1), fairShareWeight(10))
	c := s.newTeam("c", gpus(2), borrowUnlimited, fairShareWeight(10))
	c.submitEach("c", 4, "")
	c.uses(2, 0)
	a.submitEach("a", 6, "")
	a.uses(4, 3)
	c.uses(2, 0)
}

// Two departments of weights 30 and 10 share what they borrow three to one, and the teams of the
// first two to one.
func sharesOverTwoLevels(t *testing.T) {
	const idle = 240
	s := newScenario(t, 32, 8)
	s.newTeam("lender", gpus(idle), fairShareWeight(10))
	d1 := s.newDepartment("research", 2, func(spec *v1alpha1.DepartmentSpec) { spec.FairShareWeight = 30 })
	d2 := s.newDepartment("sales", 1, nil)
	a := s.newTeam("a", gpus(1), borrowUnlimited, department(d1), fairShareWeight(20))
	b := s.newTeam("b", gpus(1), borrowUnlimited, department(d1), fairShareWeight(10))
	c := s.newTeam("c", gpus(1), borrowUnlimited, department(d2), fairShareWeight(10))
	want := map[*team]float64{a: idle / 2, b: idle / 4, c: idle / 4}
	c.submitEach("c", idle+3, "")
	c.uses(idle+3, idle+2) // with what the first department does not use
	for _, m := range []*team{a, b} {
		m.submitEach("x", idle+3, "")
	}
	deadline := time.Now().Add(25 * time.Minute)
	near := func() bool { // all in the last sample
		for m, share := range want {
			if _, borrowed, err := m.usage(); err != nil || float64(borrowed) < share*0.9 || float64(borrowed) > share*1.1 {
				return false
			}
		}
		return true
	}
	for !near() {
		if time.Now().After(deadline) {
			t.Fatalf("the shares do not settle\n%s", s.report())
		}
		<-time.After(time.Second)
	}
	sum, samples := map[*team]int64{}, int64(0)
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); samples++ {
		for m := range want {
			_, borrowed, err := m.usage()
			if err != nil {
				t.Fatal(err)
			}
			sum[m] += borrowed
		}
		<-time.After(time.Second)
	}
	for m, share := range want {
		mean := float64(sum[m]) / float64(samples)
		t.Logf("team %s borrows %.1f GPUs on average, its share is %.0f", m.role, mean, share)
		if mean < share*0.95 || mean > share*1.05 {
			t.Errorf("team %s borrows %.1f GPUs on average, want %.0f within 5 %%", m.role, mean, share)
		}
	}
}
