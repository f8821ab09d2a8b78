package desired

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// maxFlavors is the limit of Kueue 0.19 for flavors in one resource group. A
// resource can be in one group only, so a Cohort cannot have more.
const maxFlavors = 64

// QueueQuota returns the nominal quota of a ClusterQueue.
func QueueQuota(queue *kueueapi.ClusterQueue) quota.PoolResources {
	pools := quota.PoolResources{}
	for fr, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
		pools.Add(fr.Flavor, quota.Resources{fr.Resource: resources.AmountFromQuantity(fr.Resource, r.NominalQuota)})
	}
	return pools
}

// Border is what a department has at one time: below which department it is, its quota and
// what it lends and borrows.
type Border struct {
	Parent string // empty for the shared cohort
	Quota  quota.Resolved
}

// TreeDepartment is a department in a Tree.
type TreeDepartment struct {
	*v1alpha1.Department
	Border
	Applied bool // whether it has a Cohort
}

// TreeQueue is the quota that a ClusterQueue has, by the department in which it counts; the
// empty name is the shared cohort. While a ClusterQueue moves, it counts where it was and where it
// will be.
type TreeQueue map[string]quota.PoolResources

// in reports whether a ClusterQueue counts in a department.
func (q TreeQueue) in(department string) bool {
	_, is := q[department]
	return is
}

// Tree is the cohort that all teams share, with its departments and ClusterQueues.
type Tree struct {
	Naming Naming
	// Ready returns the resources of the ready nodes of a pool; nil if the shared cohort
	// does not lend what is left of them.
	Ready func(pool string) quota.Resources
	// Refused returns why the quota of all departments and teams may not become this; nil
	// refuses nothing.
	Refused     func(before, after quota.PoolResources) string
	Departments map[string]*TreeDepartment
	Queues      map[string]TreeQueue
}

// below returns the quota of what is directly below each department, by its name; that of
// the shared cohort has the empty name.
func (t *Tree) below() map[string]quota.PoolResources {
	sums := map[string]quota.PoolResources{"": {}}
	for _, q := range t.Queues {
		for department, nominal := range q {
			addTo(sums, department, nominal)
		}
	}
	var visit func(parent string)
	visit = func(parent string) { // bottom-up, so that what is below a department is summed before it
		for name, d := range t.Departments {
			if d.Parent == parent {
				visit(name)
				addTo(sums, parent, d.total(sums[name]))
			}
		}
	}
	visit("")
	return sums
}

// addTo adds quota to the sum of a department.
func addTo(sums map[string]quota.PoolResources, department string, pools quota.PoolResources) {
	if sums[department] == nil {
		sums[department] = quota.PoolResources{}
	}
	for pool, amounts := range pools {
		sums[department].Add(pool, amounts)
	}
}

// total returns the quota of a department, or that of what is below it where that is more.
func (d *TreeDepartment) total(below quota.PoolResources) quota.PoolResources {
	pools := quota.PoolResources{}
	pools.AddNominal(d.Quota)
	pools.Raise(below)
	return pools
}

// Reserves returns the quota of each Cohort of its own, by department: what it has more than
// what is below it. That of the shared cohort has the empty name, and is what the ready
// nodes have more than all, or nothing without Ready. All have the same pools
// and resources, those of the whole tree.
func (t *Tree) Reserves() map[string]quota.PoolResources {
	below := t.below()
	covered, requested := quota.PoolResources{}, quota.PoolResources{}
	for _, pools := range below {
		covered.Raise(pools)
	}
	for _, q := range t.Queues {
		for _, pools := range q {
			requested.Raise(pools)
		}
	}
	maps.Copy(covered, requested) // what no ClusterQueue of a pool covers, no task requests
	reserves := map[string]quota.PoolResources{}
	for name, d := range t.Departments {
		reserves[name] = Unallocated(covered, d.total(below[name]), below[name])
	}
	ready := quota.PoolResources{}
	if t.Ready != nil {
		for pool := range covered {
			ready[pool] = t.Ready(pool)
		}
	}
	reserves[""] = Unallocated(covered, ready, below[""])
	return reserves
}

// Unallocated returns what is left of has beyond allocated, at least 0, for each pool and
// resource of covered.
func Unallocated(covered, has, allocated quota.PoolResources) quota.PoolResources {
	left := quota.PoolResources{}
	for pool, amounts := range covered {
		rest := quota.Resources{}
		for name := range amounts {
			rest[name] = max(0, has[pool][name].Minus(allocated[pool][name]))
		}
		left[pool] = rest
	}
	return left
}

// Cohorts returns the Cohorts of the tree: the shared one, if it lends, and one for each
// department, by name. Every one lists all pools and resources of the tree, because what a
// Cohort does not list is not limited. Pools beyond maxFlavors are left out, in the order
// of their names, and returned.
func (t *Tree) Cohorts() (cohorts []*kueue.CohortApplyConfiguration, leftOut []string) {
	reserves := t.Reserves()
	names := quota.Resources{}
	for _, amounts := range reserves[""] {
		names.Add(amounts)
	}
	covered, pools := names.Names(), slices.Sorted(maps.Keys(reserves[""]))
	if len(pools) > maxFlavors {
		pools, leftOut = pools[:maxFlavors], pools[maxFlavors:]
	}
	if t.Ready != nil && len(pools) > 0 {
		spec := kueue.CohortSpec().WithResourceGroups(cohortGroup(pools, covered, reserves[""], nil))
		cohorts = append(cohorts, cohort(t.Naming.Cohort, "", spec))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Departments)) {
		d := t.Departments[name]
		if !d.Applied {
			continue
		}
		spec := kueue.CohortSpec().
			WithParentName(kueueapi.CohortReference(t.Naming.CohortOf(d.Parent))).
			WithFairSharing(kueue.FairSharing().WithWeight(*resource.NewQuantity(int64(d.Spec.FairShareWeight), resource.DecimalSI)))
		if len(pools) > 0 {
			spec.WithResourceGroups(cohortGroup(pools, covered, reserves[name], &d.Quota))
		}
		cohorts = append(cohorts, cohort(DepartmentCohort(d.Department), name, spec))
	}
	return cohorts, leftOut
}

// cohort returns the Cohort of a department, or the shared one.
func cohort(name, department string, spec *kueue.CohortSpecApplyConfiguration) *kueue.CohortApplyConfiguration {
	labels := map[string]string{LabelManagedBy: ManagedBy}
	if department != "" {
		labels[LabelDepartment] = department
	}
	return kueue.Cohort(name).WithLabels(labels).WithSpec(spec).WithAnnotations(map[string]string{AnnotationDesired: digest(spec)})
}

// cohortGroup returns the resource group of a Cohort with a reserve, and with the limits of
// a department if it is one.
func cohortGroup(pools, covered []string, reserve quota.PoolResources, border *quota.Resolved) *kueue.ResourceGroupApplyConfiguration {
	group := kueue.ResourceGroup()
	for _, name := range covered {
		group.WithCoveredResources(corev1.ResourceName(name))
	}
	for _, pool := range pools {
		flavor := kueue.FlavorQuotas().WithName(kueueapi.ResourceFlavorReference(pool))
		for _, name := range covered {
			amount := kueue.ResourceQuota().WithName(corev1.ResourceName(name)).WithNominalQuota(reserve[pool].Quantity(name))
			if border != nil {
				if limit, limited := borrowingLimit(border, pool); limited {
					amount.WithBorrowingLimit(limit.Quantity(name))
				}
				if !border.Lends {
					amount.WithLendingLimit(resources.Amount(0).Quantity(name))
				}
			}
			flavor.WithResources(amount)
		}
		group.WithFlavors(flavor)
	}
	return group
}

// borrowingLimit returns what a department may borrow of a pool; limited is false if it may
// borrow all. A department whose limits are of its quota borrows nothing of other pools.
func borrowingLimit(border *quota.Resolved, pool string) (limit quota.Resources, limited bool) {
	for _, p := range border.Pools {
		if p.Name == pool {
			return p.BorrowingLimit, p.BorrowingLimit != nil
		}
	}
	return nil, !border.Unlimited
}

// FlatTree returns the tree of a cluster without departments, whose ClusterQueues have this
// quota together.
func FlatTree(naming Naming, ready func(pool string) quota.Resources, allocated quota.PoolResources) *Tree {
	return &Tree{Naming: naming, Ready: ready, Queues: map[string]TreeQueue{"all": {"": allocated}}}
}

// Inputs are what a Tree is made of.
type Inputs struct {
	Naming      Naming
	Types       catalog.Catalog
	Unallocated bool // whether the shared cohort lends what is left of the ready nodes
	Departments []v1alpha1.Department
	Allocations []v1alpha1.ComputeAllocation
	// ClusterQueues are those of Kuota, and of others in any of these cohorts.
	ClusterQueues []*kueueapi.ClusterQueue
	// Problems returns why the windows and the budget of a spec cannot be applied; nil checks
	// none.
	Problems func(*v1alpha1.ComputeAllocationSpec) governance.FieldErrors
}

// Wishes are what the specs of departments and allocations want, by name and by ClusterQueue.
type Wishes struct {
	Departments map[string]Border
	Queues      map[string]Wish
	// Invalid are the departments whose spec cannot be applied.
	Invalid map[string]governance.FieldErrors
}

// NewTree returns the tree as it is applied, and what is wanted of it. A department that is
// being deleted wants nothing, and is left out once nothing is below it.
func NewTree(in Inputs) (*Tree, Wishes) {
	t := &Tree{Naming: in.Naming.In(in.Departments), Departments: map[string]*TreeDepartment{}, Queues: map[string]TreeQueue{}}
	if in.Unallocated {
		t.Ready = func(name string) quota.Resources {
			pool, _ := in.Types.Find(name)
			return pool.Ready
		}
	}
	wishes := Wishes{Departments: map[string]Border{}, Queues: map[string]Wish{}, Invalid: map[string]governance.FieldErrors{}}
	ofCohort := map[string]string{}
	for i := range in.Departments {
		d := &in.Departments[i]
		ofCohort[DepartmentCohort(d)] = d.Name
		as := d.Allocation()
		t.Departments[d.Name] = &TreeDepartment{Department: d, Border: Border{d.Status.Parent, quota.Applied(as)}, Applied: d.Status.Cohort != ""}
		if d.DeletionTimestamp != nil {
			continue
		}
		spec := effective.Spec(as)
		resolved, errs := quota.Resolve(&spec, in.Types)
		if in.Problems != nil {
			errs = append(errs, in.Problems(&as.Spec)...)
		}
		if len(errs) > 0 {
			wishes.Invalid[d.Name] = errs
			continue
		}
		wishes.Departments[d.Name] = Border{d.Spec.Parent, resolved}
	}
	for _, q := range in.ClusterQueues {
		t.Queues[q.Name] = TreeQueue{ofCohort[string(q.Spec.CohortName)]: QueueQuota(q)}
	}
	for i := range in.Allocations {
		a := &in.Allocations[i]
		if a.Spec.Observed() {
			continue
		}
		want := func(name string, pools []quota.FlavorQuotas) {
			if _, exists := t.Queues[name]; !exists {
				t.Queues[name] = TreeQueue{}
			}
			if a.DeletionTimestamp == nil { // otherwise its ClusterQueue has the rest
				wishes.Queues[name] = Wish{a.Spec.Department, quota.Nominal(pools)}
			}
		}
		resolved, _ := quota.Wanted(a, in.Types)
		want(ClusterQueueName(a, in.Naming), resolved.Pools)
		for _, share := range resolved.Shares {
			want(in.Naming.ShareClusterQueue(a.Name, share.Share), share.Pools)
		}
	}
	for name, d := range t.Departments {
		if d.DeletionTimestamp != nil && len(Below(name, t, in.Allocations)) == 0 {
			delete(t.Departments, name)
		}
	}
	return t, wishes
}

// Reserved returns what departments have that no team has, over all departments.
func Reserved(departments []v1alpha1.Department, allocations []v1alpha1.ComputeAllocation, types catalog.Catalog) quota.PoolResources {
	sum := quota.PoolResources{}
	if len(departments) == 0 {
		return sum
	}
	t, _ := NewTree(Inputs{Types: types, Departments: departments})
	for i := range allocations {
		resolved, _ := quota.Effective(&allocations[i], types)
		nominal := quota.PoolResources{}
		nominal.AddNominal(resolved)
		t.Queues[allocations[i].Name] = TreeQueue{allocations[i].Spec.Department: nominal}
	}
	for department, pools := range t.Reserves() {
		for pool, amounts := range pools {
			if department != "" {
				sum.Add(pool, amounts)
			}
		}
	}
	return sum
}

// Below returns what a department contains, in words: its teams, its departments, and other
// ClusterQueues in its Cohort.
func Below(department string, t *Tree, allocations []v1alpha1.ComputeAllocation) (words []string) {
	ours := map[string]bool{}
	for i := range allocations {
		names := ClusterQueueNames(&allocations[i], t.Naming)
		if allocations[i].Spec.Department == department || slices.ContainsFunc(names, func(name string) bool { return t.Queues[name].in(department) }) {
			words = append(words, "team "+allocations[i].Name)
		}
		for _, name := range names {
			ours[name] = true
		}
	}
	for name, d := range t.Departments {
		if d.Name != department && (d.Spec.Parent == department || d.Applied && d.Parent == department) {
			words = append(words, "department "+name)
		}
	}
	for name, q := range t.Queues {
		if !ours[name] && q.in(department) {
			words = append(words, "ClusterQueue "+name)
		}
	}
	slices.Sort(words)
	return words
}

// Members returns the ClusterQueues that are in one of the cohorts, or are ours.
func (n Naming) Members(queues []kueueapi.ClusterQueue, ours func(*kueueapi.ClusterQueue) bool) (members []*kueueapi.ClusterQueue) {
	cohorts := map[string]bool{n.Cohort: true}
	for i := range n.Departments {
		cohorts[DepartmentCohort(&n.Departments[i])] = true
	}
	for i := range queues {
		if q := &queues[i]; cohorts[string(q.Spec.CohortName)] || ours(q) {
			members = append(members, q)
		}
	}
	return members
}

// LowerCohort returns what an existing Cohort is to become on its way to another, so that no
// quota counts twice: the parent that it has, and of each quota the lower one. It is nil if the
// Cohort has no quota that falls.
func LowerCohort(to *kueue.CohortApplyConfiguration, is *kueueapi.Cohort) *kueue.CohortApplyConfiguration {
	if is.Name == "" || to.Spec == nil {
		return nil
	}
	has := map[quota.FlavorResource]resource.Quantity{}
	for fr, r := range quota.ResourceQuotas(is.Spec.ResourceGroups) {
		has[fr] = r.NominalQuota
	}
	falls, spec := false, *to.Spec
	spec.ResourceGroups = nil
	if is.Spec.ParentName != "" { // limits need a parent
		spec.ParentName = &is.Spec.ParentName
	}
	for _, group := range to.Spec.ResourceGroups {
		group.Flavors = slices.Clone(group.Flavors)
		for i := range group.Flavors {
			flavor := &group.Flavors[i]
			flavor.Resources = slices.Clone(flavor.Resources)
			for j := range flavor.Resources {
				r := &flavor.Resources[j]
				fr := quota.FlavorResource{Flavor: string(*flavor.Name), Resource: string(*r.Name)}
				switch was := has[fr]; r.NominalQuota.Cmp(was) {
				case -1:
					falls = true
				case 1:
					r.NominalQuota = &was
				}
				delete(has, fr)
			}
		}
		spec.ResourceGroups = append(spec.ResourceGroups, group)
	}
	for _, left := range has {
		falls = falls || !left.IsZero()
	}
	if !falls {
		return nil
	}
	lower := *to
	meta := *to.ObjectMetaApplyConfiguration
	lower.ObjectMetaApplyConfiguration = &meta
	lower.Spec = &spec
	lower.Annotations = map[string]string{AnnotationDesired: digest(spec)}
	return &lower
}

// SameCohort reports whether applying a Cohort changes nothing of what an existing one means: what
// that does not list has no quota and no limits.
func SameCohort(want *kueue.CohortApplyConfiguration, is *kueueapi.Cohort) bool {
	if want.Spec == nil || ptr.Deref(want.Spec.ParentName, "") != is.Spec.ParentName {
		return false
	}
	weight := *resource.NewQuantity(DefaultWeight, resource.DecimalSI)
	if f := is.Spec.FairSharing; f != nil && f.Weight != nil {
		weight = *f.Weight
	}
	if want.Spec.FairSharing != nil && want.Spec.FairSharing.Weight.Cmp(weight) != 0 {
		return false
	}
	has := maps.Collect(quota.ResourceQuotas(is.Spec.ResourceGroups))
	same := func(a, b *resource.Quantity) bool { return (a == nil) == (b == nil) && (a == nil || a.Cmp(*b) == 0) }
	for _, group := range want.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				fr := quota.FlavorResource{Flavor: string(*flavor.Name), Resource: string(*r.Name)}
				was := has[fr]
				if was == nil {
					was = &kueueapi.ResourceQuota{}
				}
				if delete(has, fr); r.NominalQuota.Cmp(was.NominalQuota) != 0 || !same(r.BorrowingLimit, was.BorrowingLimit) || !same(r.LendingLimit, was.LendingLimit) {
					return false
				}
			}
		}
	}
	for _, left := range has { // of pools that nothing else in the tree has
		if !left.NominalQuota.IsZero() || left.BorrowingLimit != nil || left.LendingLimit != nil {
			return false
		}
	}
	return true
}
