package quota

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
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
}

// Covered returns the resources that the ClusterQueue covers, in the order of
// Compare.
func (r Resolved) Covered() []string {
	if len(r.Pools) == 0 {
		return slices.Clone(standard)
	}
	return r.Pools[0].Nominal.Names()
}

// Resolve fills in the quota of an allocation against the catalog. It returns
// all errors together, with paths from spec, and resolves nothing if there are
// any.
func Resolve(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) (Resolved, []governance.FieldError) {
	errs := validateSettings(spec)
	rows, rowErrs := resolveRows("spec.quota", spec.Quota, types)
	limits, limitErrs := resolveRows("spec.sharing.borrowLimits", spec.Sharing.BorrowLimits, types)
	errs = append(append(errs, rowErrs...), limitErrs...)
	if len(errs) > 0 {
		return Resolved{}, errs
	}

	resolved := Resolved{Lends: spec.Sharing.Strategy != v1alpha1.DontLend}
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
	cover(resolved.Pools)
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
			pools[i].Nominal[name] += 0
			if pools[i].BorrowingLimit != nil {
				pools[i].BorrowingLimit[name] += 0
			}
		}
	}
}
