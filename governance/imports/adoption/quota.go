package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// describeQuota sets the quota of an allocation, and what it lends and borrows. It
// returns why an allocation cannot have them.
func (p *planner) describeQuota(q *kueue.ClusterQueue, spec *v1alpha1.ComputeAllocationSpec) (reasons []string) {
	limits := limitsOf(q)
	spec.Sharing, reasons = limits.sharing(q.Spec.CohortName != "")
	if len(q.Spec.ResourceGroups) == 0 {
		return reasons
	}
	group := &q.Spec.ResourceGroups[0]
	for _, name := range group.CoveredResources {
		spec.CoveredResources = append(spec.CoveredResources, string(name))
	}
	for i := range group.Flavors {
		flavor := &group.Flavors[i]
		row, why := p.rowOf(string(flavor.Name))
		if why != "" {
			reasons = append(reasons, why)
			continue
		}
		nominal, borrowing := row, row
		why = p.fill(&nominal, flavor, func(r *kueue.ResourceQuota) *resource.Quantity { return &r.NominalQuota })
		if why != "" {
			reasons = append(reasons, why)
			continue
		}
		hasQuota := slices.ContainsFunc(flavor.Resources, func(r kueue.ResourceQuota) bool { return !r.NominalQuota.IsZero() })
		limited := limits.absolute && slices.ContainsFunc(flavor.Resources, func(r kueue.ResourceQuota) bool { return r.BorrowingLimit != nil && !r.BorrowingLimit.IsZero() })
		if hasQuota {
			spec.Quota = append(spec.Quota, nominal)
		}
		if limited {
			if why := p.fill(&borrowing, flavor, func(r *kueue.ResourceQuota) *resource.Quantity { return r.BorrowingLimit }); why != "" {
				reasons = append(reasons, why)
			}
			spec.Sharing.BorrowLimits = append(spec.Sharing.BorrowLimits, borrowing)
		}
		if !hasQuota && !limited {
			reasons = append(reasons, fmt.Sprintf("it has flavor %s without quota and without a borrowing limit", flavor.Name))
		}
	}
	if len(group.Flavors) > v1alpha1.MaxQuotaRows {
		reasons = append(reasons, fmt.Sprintf("it has %d flavors; an allocation has at most %d", len(group.Flavors), v1alpha1.MaxQuotaRows))
	}
	return reasons
}

// rowOf returns a row without amounts for the pool of a flavor, or why there is none.
func (p *planner) rowOf(flavor string) (v1alpha1.QuotaRow, string) {
	live := p.flavors[flavor]
	if live == nil {
		return v1alpha1.QuotaRow{}, fmt.Sprintf("ResourceFlavor %s does not exist", flavor)
	}
	if _, named := p.types.Named(flavor); named {
		return v1alpha1.QuotaRow{Pool: flavor}, ""
	}
	if pool, ok := p.typePool(p.types, live); ok {
		return v1alpha1.QuotaRow{InstanceType: pool.Types[0]}, ""
	}
	if p.fresh {
		_, why := p.proposedPool(live)
		return v1alpha1.QuotaRow{}, why
	}
	return v1alpha1.QuotaRow{}, fmt.Sprintf("no pool of the cluster policy is ResourceFlavor %s; add a pool of that name that matches nodes by its labels", flavor)
}

// typePool returns the pool of an instance type that has this flavor.
func (p *planner) typePool(types catalog.Catalog, flavor *kueue.ResourceFlavor) (catalog.Pool, bool) {
	pool, ok := types.Find(flavor.Name)
	return pool, ok && !pool.Named && len(pool.Types) == 1 && maps.Equal(flavor.Spec.NodeLabels, pool.Selects(p.Naming.InstanceTypeLabel))
}

// fill sets the amounts of a row. amount returns that of a resource; nil for none.
func (p *planner) fill(row *v1alpha1.QuotaRow, flavor *kueue.FlavorQuotas, amount func(*kueue.ResourceQuota) *resource.Quantity) string {
	pool, _ := p.types.Find(string(flavor.Name))
	zero := resource.MustParse("0")
	row.Quantities = v1alpha1.Quantities{VCPU: &zero, Memory: &zero} // what is not covered is not filled in either
	for i := range flavor.Resources {
		r := &flavor.Resources[i]
		of := amount(r)
		if of == nil {
			continue
		}
		switch name := string(r.Name); {
		case name == catalog.CPU:
			row.VCPU = of
		case name == catalog.Memory:
			row.Memory = of
		case of.IsZero():
		case name == pool.Instance.AcceleratorResource:
			n := int64(resources.AmountFromQuantity(name, *of))
			row.Accelerators = &n
		case catalog.IsPartition(name) && row.Partition == nil:
			row.Partition = &v1alpha1.Partition{Profile: strings.TrimPrefix(name, "nvidia.com/"), Count: int64(resources.AmountFromQuantity(name, *of))}
		case name == catalog.Network: // follows from the other amounts, and compare reports a difference
		case catalog.IsPartition(name) || p.lists(name):
			row.Resources = append(row.Resources, v1alpha1.ResourceQuantity{Name: name, Quantity: *of})
		case !catalog.BuiltIn(name):
			return fmt.Sprintf("it has quota of %s, which the cluster policy does not list; add it to its resources", name)
		default:
			return fmt.Sprintf("it has quota of %s in flavor %s, of which pool %s has no nodes", name, flavor.Name, flavor.Name)
		}
	}
	return ""
}

// lists reports whether the policy, or the proposed one, lists a resource.
func (p *planner) lists(resource string) bool {
	policy := cmp.Or(p.Input.Policy, p.policy)
	return policy != nil && slices.ContainsFunc(policy.Spec.Resources, func(r v1alpha1.ListedResource) bool { return r.Name == resource })
}

// addResources adds the resources of the ClusterQueues that may be managed to the proposed
// policy. An admin gives them other labels later.
func (p *planner) addResources(names []string) {
	for _, name := range names {
		if !p.fresh || len(p.structure(p.queues[name])) > 0 {
			continue
		}
		for fr := range quota.ResourceQuotas(p.queues[name].Spec.ResourceGroups) {
			if of := &p.policy.Spec.Resources; !catalog.BuiltIn(fr.Resource) && !p.lists(fr.Resource) && len(*of) < v1alpha1.MaxListedResources {
				*of = append(*of, v1alpha1.ListedResource{Name: fr.Resource, Label: fr.Resource[:min(len(fr.Resource), v1alpha1.MaxResourceLabel)]})
			}
		}
	}
}

// limits summarizes the borrowing and lending limits of a ClusterQueue.
type limits struct {
	unlimited, absolute bool // some resources have no borrowing limit; some have one above 0
	mixed               bool // a flavor has resources with and without a borrowing limit
	none                bool // all borrowing limits are 0
	lends, keeps        bool // some resources have no lending limit; some have the limit 0
	lendsPart           bool // some have one above 0
}

func limitsOf(q *kueue.ClusterQueue) (l limits) {
	set := false
	for flavor := range quota.Flavors(q.Spec.ResourceGroups) {
		with, without := false, false
		for _, r := range flavor.Resources {
			if r.BorrowingLimit == nil {
				without, l.unlimited = true, true
			} else {
				with, set = true, true
				l.absolute = l.absolute || !r.BorrowingLimit.IsZero()
			}
			switch {
			case r.LendingLimit == nil:
				l.lends = true
			case r.LendingLimit.IsZero():
				l.keeps = true
			default:
				l.lendsPart = true
			}
		}
		l.mixed = l.mixed || with && without
	}
	l.none = set && !l.unlimited && !l.absolute
	return l
}

// sharing returns what a team with these limits lends and borrows. Absolute limits are
// added to it.
func (l limits) sharing(inCohort bool) (sharing v1alpha1.Sharing, reasons []string) {
	sharing.Strategy = v1alpha1.LendAndBorrow
	switch {
	case !inCohort:
		sharing.Unlimited = true // which sets no limit
		return sharing, nil
	case l.mixed:
		return sharing, []string{"it limits borrowing for some resources of a flavor and not for others"}
	case l.lendsPart || l.keeps && l.lends:
		return sharing, []string{"it lends a part of its quota (lendingLimit); a team lends all of it or none"}
	case l.keeps && !l.none:
		return sharing, []string{"it borrows and does not lend; a team that does not lend does not borrow"}
	case l.keeps:
		return v1alpha1.Sharing{Strategy: v1alpha1.DontLend}, nil
	case l.none:
		return v1alpha1.Sharing{Strategy: v1alpha1.Lend}, nil
	case l.unlimited:
		sharing.Unlimited = true
	case l.absolute:
		sharing.BorrowLimitPercent = new(int32) // for flavors whose limits are all 0
	default: // no quota
		sharing.Unlimited = true
	}
	return sharing, nil
}

// addPools adds a pool to the proposed policy for each flavor of the ClusterQueues that
// may be managed, except flavors of instance types. A flavor that selects more labels comes first,
// because the first pool that matches a node has it.
func (p *planner) addPools(names []string) {
	if !p.fresh {
		return
	}
	var pools []v1alpha1.Pool
	added := map[string]bool{}
	for _, name := range names {
		if len(p.structure(p.queues[name])) > 0 {
			continue
		}
		for f := range quota.Flavors(p.queues[name].Spec.ResourceGroups) {
			flavor := p.flavors[string(f.Name)]
			if flavor == nil || added[flavor.Name] {
				continue
			}
			added[flavor.Name] = true
			if _, ok := p.typePool(p.types, flavor); ok {
				continue
			}
			if pool, why := p.proposedPool(flavor); why == "" {
				pools = append(pools, pool)
			}
		}
	}
	slices.SortStableFunc(pools, func(a, b v1alpha1.Pool) int {
		return p.selected(&b) - p.selected(&a)
	})
	p.policy.Spec.Pools = pools[:min(len(pools), v1alpha1.MaxPools)]
	p.types = p.catalog()
}

// selected returns the number of node labels that the flavor of a pool selects.
func (p *planner) selected(pool *v1alpha1.Pool) int { return len(p.flavors[pool.Name].Spec.NodeLabels) }

// proposedPool returns the pool of the nodes that a flavor selects, or why there can
// be none. The pool of a flavor that selects all nodes matches a label that all
// nodes have.
func (p *planner) proposedPool(flavor *kueue.ResourceFlavor) (v1alpha1.Pool, string) {
	pool := v1alpha1.Pool{Name: flavor.Name, Match: v1alpha1.PoolMatch{NodeLabels: maps.Clone(flavor.Spec.NodeLabels)}}
	if len(pool.Match.NodeLabels) == 0 {
		pool.Match.NodeLabels = map[string]string{corev1.LabelOSStable: "linux"}
	}
	if len(pool.Name) > v1alpha1.MaxPoolName || !v1alpha1.ValidName(pool.Name) {
		return pool, fmt.Sprintf("ResourceFlavor %s cannot be a pool: the name of a pool has up to %d lower-case letters, digits and hyphens", flavor.Name, v1alpha1.MaxPoolName)
	}
	if problem := p.types.Clashes(pool); problem != "" {
		return pool, fmt.Sprintf("ResourceFlavor %s cannot be a pool: %s", flavor.Name, problem)
	}
	return pool, ""
}
