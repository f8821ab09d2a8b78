package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Department is the plan for one Cohort that is nested in the cohort of the policy.
type Department struct {
	Cohort  string
	Reasons []string // why no department describes it; empty if one does

	// Department describes it; nil with reasons, and if one does already.
	Department *v1alpha1.Department
}

// planDepartments plans a department for each nested Cohort, those above before those below. It must
// be called when the pools are known.
func (p *planner) planDepartments() {
	known := map[string]*v1alpha1.Department{} // by Cohort
	taken := map[string]bool{}
	for i := range p.Input.Departments {
		d := &p.Input.Departments[i]
		known[desired.DepartmentCohort(d)], taken[d.Name] = d, true
	}
	p.departments = map[string]*Department{}
	level := []string{p.cohort}
	for range v1alpha1.MaxDepartmentLevels {
		var next []string
		for i := range p.Cohorts {
			c := &p.Cohorts[i]
			if !slices.Contains(level, string(c.Spec.ParentName)) {
				continue
			}
			next = append(next, c.Name)
			plan := &Department{Cohort: c.Name}
			p.departments[c.Name] = plan
			if known[c.Name] != nil {
				continue
			}
			if above := p.departments[string(c.Spec.ParentName)]; above != nil && len(above.Reasons) > 0 {
				plan.Reasons = []string{fmt.Sprintf("it is nested in cohort %s, which no department describes", above.Cohort)}
				continue
			}
			if plan.Department, plan.Reasons = p.describeCohort(c, teamName(c.Name, taken)); plan.Department == nil {
				continue
			}
			if parent := string(c.Spec.ParentName); parent != p.cohort {
				plan.Department.Spec.Parent = known[parent].Name
			}
			taken[plan.Department.Name] = true
			known[c.Name] = plan.Department
		}
		slices.Sort(next)
		level = next
	}
	p.naming = p.naming.In(nil)
	for _, d := range known {
		p.naming.Departments = append(p.naming.Departments, *d)
	}
	p.compareCohorts(known)
}

// describeCohort returns the department of a Cohort, without its parent, or why there is none.
func (p *planner) describeCohort(c *kueue.Cohort, name string) (*v1alpha1.Department, []string) {
	reasons := ownerReasons(c)
	if len(c.Spec.ResourceGroups) > 1 {
		reasons = append(reasons, fmt.Sprintf("cohort %s has %d resource groups, and the quota of a department is in one", c.Name, len(c.Spec.ResourceGroups)))
	}
	weight := int32(desired.DefaultWeight)
	if f := c.Spec.FairSharing; f != nil && f.Weight != nil {
		n := int64(resources.AmountFromQuantity("", *f.Weight))
		if weight = int32(min(n, v1alpha1.MaxWeight)); f.Weight.CmpInt64(int64(weight)) != 0 {
			reasons = append(reasons, fmt.Sprintf("the fair-share weight %s of cohort %s is not a whole number from 0 to %d", f.Weight, c.Name, v1alpha1.MaxWeight))
		}
	}
	if len(reasons) > 0 {
		return nil, reasons
	}
	// The quota of a department is that of its Cohort and of all below it.
	total := p.totalOf(c.Name)
	whole := &kueue.ClusterQueue{Spec: kueue.ClusterQueueSpec{CohortName: c.Spec.ParentName}}
	group := kueue.ResourceGroup{}
	limits := maps.Collect(quota.ResourceQuotas(c.Spec.ResourceGroups))
	for fr := range limits {
		if _, has := total[fr]; !has {
			total[fr] = resource.Quantity{}
		}
	}
	for _, fr := range slices.SortedFunc(maps.Keys(total), func(a, b quota.FlavorResource) int {
		return strings.Compare(a.Flavor+" "+a.Resource, b.Flavor+" "+b.Resource)
	}) {
		r := kueue.ResourceQuota{Name: corev1.ResourceName(fr.Resource), NominalQuota: total[fr]}
		if was := limits[fr]; was != nil {
			r.BorrowingLimit, r.LendingLimit = was.BorrowingLimit, was.LendingLimit
		}
		if n := len(group.Flavors); n == 0 || string(group.Flavors[n-1].Name) != fr.Flavor {
			group.Flavors = append(group.Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(fr.Flavor)})
		}
		last := &group.Flavors[len(group.Flavors)-1]
		last.Resources = append(last.Resources, r)
	}
	// A flavor without quota and limits is not in a department.
	group.Flavors = slices.DeleteFunc(group.Flavors, func(f kueue.FlavorQuotas) bool {
		return !slices.ContainsFunc(f.Resources, func(r kueue.ResourceQuota) bool {
			return !r.NominalQuota.IsZero() || r.BorrowingLimit != nil && !r.BorrowingLimit.IsZero()
		})
	})
	if len(group.Flavors) > 0 {
		whole.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	}
	var spec v1alpha1.ComputeAllocationSpec
	if reasons = p.describeQuota(whole, &spec); len(reasons) > 0 {
		for i, reason := range reasons {
			reasons[i] = fmt.Sprintf("cohort %s: %s", c.Name, reason)
		}
		return nil, reasons
	}
	d := &v1alpha1.Department{Spec: v1alpha1.DepartmentSpec{CohortName: c.Name, Quota: spec.Quota, Sharing: spec.Sharing, FairShareWeight: weight}}
	d.Name = name
	if d.Name != c.Name {
		d.Spec.DisplayName = c.Name[:min(len(c.Name), v1alpha1.MaxDisplayName)]
	}
	return d, nil
}

// totalOf returns the quota in and below a Cohort.
func (p *planner) totalOf(cohort string) map[quota.FlavorResource]resource.Quantity {
	total := map[quota.FlavorResource]resource.Quantity{}
	add := func(fr quota.FlavorResource, more resource.Quantity) {
		sum := total[fr]
		sum.Add(more)
		total[fr] = sum
	}
	for i := range p.ClusterQueues {
		if q := &p.ClusterQueues[i]; string(q.Spec.CohortName) == cohort {
			for fr, r := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
				add(fr, r.NominalQuota)
			}
		}
	}
	for i := range p.Cohorts {
		c := &p.Cohorts[i]
		if c.Name == cohort {
			for fr, r := range quota.ResourceQuotas(c.Spec.ResourceGroups) {
				add(fr, r.NominalQuota)
			}
		}
		if string(c.Spec.ParentName) == cohort {
			for fr, more := range p.totalOf(c.Name) {
				add(fr, more)
			}
		}
	}
	return total
}

// compareCohorts adds a reason to each planned department whose Cohort Kuota would change.
func (p *planner) compareCohorts(known map[string]*v1alpha1.Department) {
	var members []*kueue.ClusterQueue
	for i := range p.ClusterQueues {
		members = append(members, &p.ClusterQueues[i])
	}
	tree, wishes := desired.NewTree(desired.Inputs{Naming: p.naming, Types: p.types, Departments: p.naming.Departments, Allocations: p.Allocations, ClusterQueues: members})
	settled := tree.Settle(wishes.Departments, nil)
	cohorts, _ := tree.Cohorts()
	for _, want := range cohorts {
		plan := p.departments[*want.GetName()]
		i := slices.IndexFunc(p.Cohorts, func(c kueue.Cohort) bool { return c.Name == *want.GetName() })
		if plan == nil || plan.Department == nil || i < 0 {
			continue
		}
		if !desired.SameCohort(want, &p.Cohorts[i]) {
			plan.Reasons = []string{fmt.Sprintf("a department would change the quota or the limits of cohort %s", plan.Cohort)}
		}
	}
	for cohort, plan := range p.departments {
		if plan.Department == nil {
			continue
		}
		if refusal, refused := settled.Departments[plan.Department.Name]; refused {
			plan.Reasons = append(plan.Reasons, fmt.Sprintf("cohort %s: %s", cohort, refusal.Message))
		}
		if len(plan.Reasons) > 0 {
			plan.Department = nil
			delete(known, cohort)
		}
	}
}

// departmentOf returns the name of the department of a nested cohort; empty for none.
func (p *planner) departmentOf(cohort string) string {
	if plan := p.departments[cohort]; plan == nil || len(plan.Reasons) > 0 {
		return ""
	}
	return p.naming.DepartmentOf(kueue.CohortReference(cohort))
}
