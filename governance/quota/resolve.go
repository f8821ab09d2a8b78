package quota

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// FlavorQuotas is the quota of a team in one pool, and so in one ResourceFlavor.
type FlavorQuotas struct {
	Name    string
	Nominal Resources // with all defaults filled in
	// BorrowingLimit is what the team may borrow in addition; nil for no limit. It
	// has the same resources as Nominal.
	BorrowingLimit Resources
	// BorrowOnly reports that the team has no nominal quota in the pool.
	BorrowOnly bool
}

// Resolved is the quota of an allocation with all defaults filled in.
type Resolved struct {
	// Pools are in the order of the rows, followed by those with BorrowOnly by
	// name. All have the same resources.
	Pools []FlavorQuotas
	// Lends reports whether other teams may borrow idle quota.
	Lends bool
	// Unlimited reports that pools that are not listed may be borrowed without a limit, for
	// a department.
	Unlimited bool

	// Shares are the quotas of the shares that have one, in their order.
	Shares []ShareQuota

	// covered are the resources that the ClusterQueue covers, in their order; empty for
	// those of Pools.
	covered []string
}

// ShareQuota is the quota of a share of a team.
type ShareQuota struct {
	Share string
	Resolved
}

// OfShare returns the quota of a share, or that of the team's queue if the share has none.
func (r Resolved) OfShare(name string) Resolved {
	for _, share := range r.Shares {
		if share.Share == name {
			return share.Resolved
		}
	}
	return r
}

// Total returns the quota of the team with that of its shares, by pool in the order of the
// team's rows and then of the shares'.
func (r Resolved) Total() Resolved {
	if len(r.Shares) == 0 {
		return r
	}
	total, at := Resolved{Lends: r.Lends, Unlimited: r.Unlimited}, map[string]int{}
	for _, part := range append([]ShareQuota{{Resolved: r}}, r.Shares...) {
		for _, pool := range part.Pools {
			i, exists := at[pool.Name]
			if !exists {
				i = len(total.Pools)
				at[pool.Name] = i
				total.Pools = append(total.Pools, FlavorQuotas{Name: pool.Name, Nominal: Resources{}, BorrowingLimit: Resources{}, BorrowOnly: true})
			}
			sum := &total.Pools[i]
			sum.Nominal.Add(pool.Nominal)
			if sum.BorrowingLimit != nil && pool.BorrowingLimit != nil {
				sum.BorrowingLimit.Add(pool.BorrowingLimit)
			} else {
				sum.BorrowingLimit = nil
			}
			sum.BorrowOnly = sum.BorrowOnly && pool.BorrowOnly
		}
	}
	cover(total.Pools)
	return total
}

// Covered returns the resources that the ClusterQueue covers, in the order of
// Compare.
func (r Resolved) Covered() []string {
	if len(r.covered) > 0 {
		return slices.Clone(r.covered)
	}
	if len(r.Pools) == 0 {
		return slices.Clone(standard)
	}
	return r.Pools[0].Nominal.Names()
}

// PoolNames returns the names of the pools in alphabetical order.
func (r Resolved) PoolNames() []string {
	names := make([]string, len(r.Pools))
	for i, pool := range r.Pools {
		names[i] = pool.Name
	}
	slices.Sort(names)
	return names
}

// Resolve fills in the quota of an allocation against the catalog. It returns
// all errors together, with paths from spec, and resolves nothing if there are
// any.
func Resolve(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) (Resolved, []governance.FieldError) {
	rows, errs := resolveRows("spec.quota", spec.Quota, types)
	limits, limitErrs := resolveRows("spec.sharing.borrowLimits", spec.Sharing.BorrowLimits, types)
	errs = append(errs, limitErrs...)
	if len(errs) > 0 {
		return Resolved{}, errs
	}

	resolved := Resolved{Lends: spec.Sharing.Strategy != v1alpha1.DontLend, Unlimited: spec.Sharing.Unlimited, covered: spec.CoveredResources}
	for _, row := range rows {
		pool := FlavorQuotas{Name: row.pool, Nominal: row.amounts}
		var ok bool
		if pool.BorrowingLimit, ok = borrowLimit(spec.Sharing, row.amounts); !ok {
			return Resolved{}, []governance.FieldError{{Path: "spec.sharing.borrowLimitPercent", Message: "is more than Kubernetes can count; enter less"}}
		}
		resolved.Pools = append(resolved.Pools, pool)
	}

	slices.SortFunc(limits, func(a, b resolvedRow) int { return strings.Compare(a.pool, b.pool) })
	for _, limit := range limits {
		i := slices.IndexFunc(resolved.Pools, func(p FlavorQuotas) bool { return p.Name == limit.pool })
		if i < 0 {
			resolved.Pools = append(resolved.Pools, FlavorQuotas{Name: limit.pool, Nominal: Resources{}, BorrowingLimit: limit.amounts, BorrowOnly: true})
			continue
		}
		resolved.Pools[i].BorrowingLimit = limit.amounts
	}
	for i := range spec.Shares {
		share := &spec.Shares[i]
		if len(share.Quota) == 0 {
			continue
		}
		of := spec.OfShare(share)
		own, shareErrs := Resolve(&of, types)
		for _, err := range shareErrs {
			err.Path = fmt.Sprintf("spec.shares[%d]%s", i, strings.TrimPrefix(err.Path, "spec"))
			errs = append(errs, err)
		}
		resolved.Shares = append(resolved.Shares, ShareQuota{share.Name, own})
	}
	if len(errs) > 0 {
		return Resolved{}, errs
	}
	if len(spec.CoveredResources) == 0 {
		cover(resolved.Pools)
		return resolved, nil
	}
	if errs := coverOnly(resolved.Pools, spec); len(errs) > 0 {
		return Resolved{}, errs
	}
	return resolved, nil
}

// borrowLimit returns the borrowing limit of a team with this nominal quota; nil
// for no limit. ok is false on overflow.
func borrowLimit(sharing v1alpha1.Sharing, nominal Resources) (limit Resources, ok bool) {
	switch {
	case sharing.Strategy == v1alpha1.Lend || sharing.Strategy == v1alpha1.DontLend:
		return nominal.percent(0)
	case sharing.Unlimited:
		return nil, true
	case sharing.BorrowLimitPercent != nil:
		return nominal.percent(int64(*sharing.BorrowLimitPercent))
	}
	return nominal.percent(v1alpha1.DefaultBorrowLimitPercent)
}

// cover adds to every pool the resources of all others with quota 0, because
// Kueue requires the flavors of a resource group to list the same resources.
func cover(pools []FlavorQuotas) {
	all := Resources{}
	for _, name := range standard {
		all[name] = 0
	}
	for _, p := range pools {
		for _, r := range []Resources{p.Nominal, p.BorrowingLimit} {
			for name := range r {
				all[name] = 0
			}
		}
	}
	for i := range pools {
		for name := range all {
			pools[i].Nominal[name] = pools[i].Nominal[name].Plus(0)
			if pools[i].BorrowingLimit != nil {
				pools[i].BorrowingLimit[name] = pools[i].BorrowingLimit[name].Plus(0)
			}
		}
	}
}

// coverOnly removes from every pool the resources that a ClusterQueue does not
// cover, and adds those that it covers with quota 0. It returns an error for each
// amount that was entered for a resource that the ClusterQueue does not cover.
// Network devices, and amounts that only followed from others, are removed.
func coverOnly(pools []FlavorQuotas, spec *v1alpha1.ComputeAllocationSpec) (errs governance.FieldErrors) {
	covered := map[string]bool{}
	for _, name := range spec.CoveredResources {
		covered[name] = true
	}
	checkCovered("spec.quota", spec.Quota, covered, &errs)
	checkCovered("spec.sharing.borrowLimits", spec.Sharing.BorrowLimits, covered, &errs)
	for i := range pools {
		for _, r := range []Resources{pools[i].Nominal, pools[i].BorrowingLimit} {
			if r == nil {
				continue
			}
			for name, amount := range r {
				if covered[name] {
					continue
				}
				if delete(r, name); amount > 0 && !catalog.FollowsAccelerators(name) {
					errs.Add("spec.coveredResources", fmt.Sprintf("ClusterQueue %s does not cover %s, of which pool %s has quota; add it", spec.ClusterQueueName, name, pools[i].Name))
				}
			}
			for name := range covered {
				r[name] = r[name].Plus(0)
			}
		}
	}
	return errs
}

// checkCovered adds an error for each vCPU and memory of rows that is not covered.
func checkCovered(path string, rows []v1alpha1.QuotaRow, covered map[string]bool, errs *governance.FieldErrors) {
	for i, row := range rows {
		for _, entered := range []struct {
			name, field string
			amount      *resource.Quantity
		}{{catalog.CPU, "vCPU", row.VCPU}, {catalog.Memory, "memory", row.Memory}} {
			if entered.amount != nil && entered.amount.Sign() > 0 && !covered[entered.name] {
				errs.Add(fmt.Sprintf("%s[%d].%s", path, i, entered.field), "the ClusterQueue does not cover "+entered.name+"; clear it, or add it to coveredResources")
			}
		}
	}
}

// Typed returns the quota of an allocation after these amounts were typed into the row
// of a pool, or into a new row. What the row leaves open follows from them, and so do
// limits in percent. ok is false if the allocation is not valid then.
func Typed(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog, pool string, amounts Resources) (resolved Resolved, ok bool) {
	next := *spec
	next.Quota = slices.Clone(spec.Quota)
	i := slices.IndexFunc(next.Quota, func(row v1alpha1.QuotaRow) bool {
		found, problem := poolOf(row, types)
		return problem == "" && found.Name == pool
	})
	if i < 0 {
		row := v1alpha1.QuotaRow{InstanceType: pool}
		if _, named := types.Named(pool); named {
			row = v1alpha1.QuotaRow{Pool: pool}
		}
		i, next.Quota = len(next.Quota), append(next.Quota, row)
	}
	row := &next.Quota[i]
	for name, amount := range amounts {
		others := slices.DeleteFunc(slices.Clone(row.Resources), func(r v1alpha1.ResourceQuantity) bool { return r.Name == name })
		if len(others) < len(row.Resources) || !catalog.IsAccelerator(name) && !catalog.FollowsAccelerators(name) {
			row.Resources = append(others, v1alpha1.ResourceQuantity{Name: name, Quantity: amount.Quantity(name)})
			continue
		}
		switch {
		case name == catalog.CPU:
			row.VCPU = ptr.To(amount.Quantity(name))
		case name == catalog.Memory:
			row.Memory = ptr.To(amount.Quantity(name))
		case catalog.IsPartition(name):
			row.Partition = &v1alpha1.Partition{Profile: strings.TrimPrefix(name, PartitionResource("")), Count: int64(amount)}
		case name != catalog.Network:
			row.Accelerators = ptr.To(int64(amount))
		}
		row.Instances = nil
	}
	resolved, errs := Resolve(&next, types)
	return resolved, len(errs) == 0
}
