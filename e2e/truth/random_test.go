package truth_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// randomCohort returns the cohort of a seed: of an even one, a tree of departments of up
// to three levels. Its tasks request about one and a half
// times what the teams can have, so that some of them wait.
func randomCohort(seed uint64) *cohort {
	r := rand.New(rand.NewPCG(seed, 20))
	s := &cohort{seed: seed, unallocated: map[string]resources.Amount{}}
	used := pools[:1+r.IntN(len(pools))]
	teams := 2 + r.IntN(5)
	var total int64
	for i := range teams {
		a := randomTeam(r, used)
		a.Name = teamName(i)
		s.teams = append(s.teams, a)
		for _, row := range a.Spec.Quota {
			total += *row.Accelerators
		}
	}
	for _, pool := range used {
		s.unallocated[pool] = oneOf(r, resources.Amount(0), 0, 0, 2, 4)
		total += int64(s.unallocated[pool])
	}
	s.in = slices.Repeat([]int{root}, teams)
	if seed%2 == 0 {
		total += s.divide(rand.New(rand.NewPCG(seed, 22)), used)
	}
	for requested := int64(0); requested < total*3/2 && len(s.tasks) < 16 || len(s.tasks) < 4; {
		k := randomTask(r, used)
		k.name, k.team = fmt.Sprintf("t%d", len(s.tasks)), r.IntN(teams)
		if r.IntN(5) > 0 {
			fit(&k, s.teams[k.team])
		}
		requested += int64(k.pods) * int64(max(1, k.each[catalog.GPU]))
		s.tasks = append(s.tasks, k)
	}
	return s
}

// divide puts the teams into random departments, and returns the GPUs of their reserves.
func (s *cohort) divide(r *rand.Rand, used []string) (reserved int64) {
	amounts := func(some ...resources.Amount) map[string]resources.Amount {
		all := map[string]resources.Amount{}
		for _, pool := range used {
			if amount := oneOf(r, some...); amount >= 0 {
				all[pool] = amount
			}
		}
		return all
	}
	for i := range 2 + r.IntN(4) {
		d := department{parent: root, weight: oneOf(r, int64(0), 1, 1, 2, 5), reserve: amounts(0, 0, 2, 4), borrowing: amounts(-1, -1, 0, 1, 2, 4, 8), lending: amounts(-1, -1, 0, 2, 4, 8)}
		if above := r.IntN(i+1) - 1; above != root && s.level(above) < 3 {
			d.parent = above
		}
		s.departments = append(s.departments, d)
		for _, gpus := range d.reserve {
			reserved += int64(gpus)
		}
	}
	for i := range s.in {
		s.in[i] = r.IntN(len(s.departments)+1) - 1
	}
	return reserved
}

// fit lowers the size of a task so that it requests no more than the team's quota in one
// of its pools: most tasks can start some time.
func fit(k *task, team *v1alpha1.ComputeAllocation) {
	resolved, _ := quota.Resolve(&team.Spec, instanceTypes)
	pool := resolved.Pools[0]
	for _, p := range resolved.Pools {
		if p.Name == k.pool {
			pool = p
		}
	}
	if k.pool != "" && pool.Nominal[catalog.GPU] > 0 {
		k.pool = pool.Name
	}
	for name, each := range k.each {
		if pool.Nominal[name] == 0 { // borrowed only
			continue
		}
		for ; k.pods > 1 && each.Times(int64(k.pods)) > pool.Nominal[name]; k.pods-- {
		}
		k.each[name] = min(each, pool.Nominal[name])
	}
}

// randomTeam returns a team with quota in some of the pools.
func randomTeam(r *rand.Rand, used []string) *v1alpha1.ComputeAllocation {
	a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{}}
	a.Spec.Activation = v1alpha1.Active
	a.Spec.FairShareWeight = oneOf(r, int32(0), 1, 10, 10, 20, 50, 100)
	a.Spec.QueueingStrategy = oneOf(r, "", "", "", "", "", "", "", "StrictFIFO")
	order := r.Perm(len(used))[:1+r.IntN(len(used))]
	for _, i := range order {
		row := v1alpha1.QuotaRow{InstanceType: used[i], Quantities: v1alpha1.Quantities{Accelerators: ptr.To(oneOf(r, int64(2), 4, 4, 6, 8, 8))}}
		if r.IntN(3) == 0 { // fewer or more than the share of the GPUs
			row.VCPU = resource.NewQuantity(*row.Accelerators*oneOf(r, int64(4), 6, 12), resource.DecimalSI)
		}
		a.Spec.Quota = append(a.Spec.Quota, row)
	}
	a.Spec.Sharing.Strategy = oneOf(r, v1alpha1.LendAndBorrow, v1alpha1.LendAndBorrow, v1alpha1.LendAndBorrow, v1alpha1.Lend, v1alpha1.DontLend)
	if a.Spec.Sharing.Strategy == v1alpha1.LendAndBorrow {
		switch r.IntN(4) {
		case 0:
			a.Spec.Sharing.Unlimited = true
		case 1:
			i := r.IntN(len(used)) // a pool in which it may have no quota
			a.Spec.Sharing.BorrowLimits = []v1alpha1.QuotaRow{{InstanceType: used[i], Quantities: v1alpha1.Quantities{Accelerators: ptr.To(oneOf(r, int64(1), 2, 4, 8))}}}
		default:
			a.Spec.Sharing.BorrowLimitPercent = ptr.To(oneOf(r, int32(0), 25, 50, 50, 100, 200))
		}
	}
	a.Spec.Preemption.WithinTeam = oneOf(r, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptNever)
	switch r.IntN(6) {
	case 0:
		a.Spec.Preemption.ReclaimWithinCohort, a.Spec.Preemption.BorrowWithinCohort = "Never", "Never"
	case 1:
		a.Spec.Preemption.ReclaimWithinCohort = "LowerPriority"
	case 2:
		a.Spec.Preemption.BorrowWithinCohort = "Never"
	}
	return a
}

// randomTask returns a task of one to four pods: most with GPUs, some without.
func randomTask(r *rand.Rand, used []string) task {
	k := task{pods: oneOf(r, int32(1), 1, 1, 1, 2, 2, 3, 4), class: r.IntN(len(classes)+1) - 1, each: quota.Resources{}}
	gpus := oneOf(r, resources.Amount(1), 1, 2, 2, 3, 4)
	if r.IntN(8) > 0 {
		k.each[catalog.GPU] = gpus
	}
	k.each[catalog.CPU] = gpus.Times(oneOf(r, int64(2), 4, 8, 8, 12) * 1000)
	if r.IntN(2) == 0 {
		k.each[catalog.Memory] = gpus.Times(oneOf(r, int64(16), 32, 64, 80) * int64(catalog.GiB))
	}
	if len(used) > 1 && r.IntN(5) == 0 {
		k.pool = oneOf(r, used...)
	}
	return k
}
