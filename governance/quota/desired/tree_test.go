package desired_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Whatever departments and teams want, what the Cohorts and the ClusterQueues have together is,
// at every level, the quota of that level, and at the top the ready nodes plus the quota beyond
// them. No department has more below it than its quota, and none is below itself.
func TestRandomTrees(t *testing.T) {
	pools := []string{"a", "b"}
	for seed := range uint64(10_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		some := func(most int64) quota.PoolResources {
			all := quota.PoolResources{}
			for _, pool := range pools {
				if random.IntN(3) > 0 {
					all[pool] = quota.Resources{catalog.GPU: resources.Amount(random.Int64N(most + 1)), catalog.CPU: resources.Amount(random.Int64N(most*1000 + 1))}
				}
			}
			return all
		}
		ready := map[string]quota.Resources{"a": {catalog.GPU: 40, catalog.CPU: 40_000}, "b": {catalog.GPU: resources.Amount(random.Int64N(20))}}
		tree := &desired.Tree{
			Naming: desired.DefaultNaming, Ready: func(pool string) quota.Resources { return ready[pool] },
			Departments: map[string]*desired.TreeDepartment{}, Queues: map[string]desired.TreeQueue{},
		}
		var names []string
		for i := range random.IntN(7) {
			names = append(names, fmt.Sprint("d", i))
			d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}
			tree.Departments[names[i]] = &desired.TreeDepartment{Department: d}
		}
		for i := range random.IntN(12) {
			tree.Queues[fmt.Sprint("q", i)] = desired.TreeQueue{}
		}
		for range 4 { // changes, each of any number of departments and teams
			anyOf := func() string {
				if i := random.IntN(len(names) + 1); i < len(names) {
					return names[i]
				}
				return ""
			}
			borders, wishes := map[string]desired.Border{}, map[string]desired.Wish{}
			for _, name := range names {
				borders[name] = desired.Border{Parent: anyOf(), Quota: resolvedOf(some(30))}
			}
			for name := range tree.Queues {
				wishes[name] = desired.Wish{Department: anyOf(), Nominal: some(8)}
			}
			settled := tree.Settle(borders, wishes)
			checkTree(t, seed, tree, ready)
			for name := range tree.Queues { // each is written as granted
				if _, refused := settled.Queues[name]; !refused {
					tree.Queues[name] = desired.TreeQueue{wishes[name].Department: wishes[name].Nominal}
				}
			}
			checkTree(t, seed, tree, ready)
		}
		if t.Failed() {
			return
		}
	}
}

func resolvedOf(pools quota.PoolResources) (resolved quota.Resolved) {
	for name, amounts := range pools {
		resolved.Pools = append(resolved.Pools, quota.FlavorQuotas{Name: name, Nominal: amounts})
	}
	return resolved
}

func checkTree(t *testing.T, seed uint64, tree *desired.Tree, ready map[string]quota.Resources) {
	t.Helper()
	for name := range tree.Departments {
		seen := map[string]bool{}
		for above := name; above != ""; above = tree.Departments[above].Parent {
			if seen[above] {
				t.Fatalf("seed %d: %s is below itself", seed, name)
			}
			seen[above] = true
		}
		if len(seen) > v1alpha1.MaxDepartmentLevels {
			t.Fatalf("seed %d: %s is at level %d", seed, name, len(seen))
		}
	}
	cohorts, _ := tree.Cohorts()
	own := map[string]map[quota.FlavorResource]int64{} // quota of each Cohort
	for _, c := range cohorts {
		has := map[quota.FlavorResource]int64{}
		for _, group := range c.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					has[quota.FlavorResource{Flavor: string(*flavor.Name), Resource: string(*r.Name)}] = r.NominalQuota.MilliValue()
				}
			}
		}
		own[*c.GetName()] = has
	}
	var sum func(department string, fr quota.FlavorResource) int64
	sum = func(department string, fr quota.FlavorResource) int64 {
		total := own[tree.Naming.CohortOf(department)][fr]
		for _, q := range tree.Queues {
			total += milli(q[department][fr.Flavor], fr.Resource)
		}
		for name, d := range tree.Departments {
			if d.Applied && d.Parent == department {
				total += sum(name, fr)
			}
		}
		return total
	}
	for fr := range own[tree.Naming.Cohort] {
		for name, d := range tree.Departments {
			if !d.Applied {
				continue
			}
			want := int64(0)
			for _, p := range d.Quota.Pools {
				if p.Name == fr.Flavor {
					want = milli(p.Nominal, fr.Resource)
				}
			}
			if got := sum(name, fr); got != want {
				t.Errorf("seed %d: %s and what is below it have %d of %v, want its quota %d", seed, name, got, fr, want)
			}
		}
		beyond := sum("", fr) - own[tree.Naming.Cohort][fr] - milli(ready[fr.Flavor], fr.Resource)
		if got, want := sum("", fr), milli(ready[fr.Flavor], fr.Resource)+max(0, beyond); got != want {
			t.Errorf("seed %d: all have %d of %v, want %d", seed, got, fr, want)
		}
	}
}

func milli(amounts quota.Resources, name string) int64 {
	q := amounts.Quantity(name)
	return q.MilliValue()
}

// A Cohort on its way to another has the lower of each quota, and the parent that it has.
func TestLowerCohort(t *testing.T) {
	cohortOf := func(gpus resources.Amount) *desired.Tree {
		return desired.FlatTree(desired.DefaultNaming, func(string) quota.Resources { return quota.Resources{catalog.GPU: 8, catalog.CPU: 8000} },
			quota.PoolResources{"a": {catalog.GPU: 8 - gpus, catalog.CPU: 4000}})
	}
	to, _ := cohortOf(2).Cohorts()
	is := func(gpus, cpu string, parent kueue.CohortReference) *kueue.Cohort {
		return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: kueue.CohortSpec{ParentName: parent, ResourceGroups: []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{{Name: "a", Resources: []kueue.ResourceQuota{
			{Name: catalog.GPU, NominalQuota: resource.MustParse(gpus)}, {Name: catalog.CPU, NominalQuota: resource.MustParse(cpu)},
		}}}}}}}
	}
	for name, tc := range map[string]struct {
		is       *kueue.Cohort
		gpu, cpu string // empty for nil
	}{
		"rises":      {is("1", "1", "p"), "", ""},
		"falls":      {is("3", "5", "p"), "2", "4"},
		"both":       {is("3", "1", "p"), "2", "1"},
		"not there":  {&kueue.Cohort{}, "", ""},
		"as it is":   {is("2", "4", ""), "", ""},
		"other pool": {&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: kueue.CohortSpec{ResourceGroups: []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{{Name: "z", Resources: []kueue.ResourceQuota{{Name: catalog.GPU, NominalQuota: resource.MustParse("1")}}}}}}}}, "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			lower := desired.LowerCohort(to[0], tc.is)
			if (lower == nil) != (tc.gpu == "") {
				t.Fatalf("got %v, want a lower one: %v", lower, tc.gpu != "")
			}
			if lower == nil {
				return
			}
			for _, r := range lower.Spec.ResourceGroups[0].Flavors[0].Resources {
				if want := map[string]string{catalog.GPU: tc.gpu, catalog.CPU: tc.cpu}[string(*r.Name)]; r.NominalQuota.String() != want {
					t.Errorf("%s: got %s, want %s", *r.Name, r.NominalQuota, want)
				}
			}
			if got := to[0].Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.String(); got != "2" {
				t.Errorf("the Cohort itself changed: %s", got)
			}
			if tc.is.Spec.ParentName != "" && *lower.Spec.ParentName != "p" {
				t.Errorf("got parent %v", lower.Spec.ParentName)
			}
		})
	}
}
