package quota

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
)

// MaxRows is how many rows an allocation may have.
const MaxRows = 15

// Pool is what a team has in one pool.
type FlavorQuotas struct {
	Name    string
	Nominal Resources // its own, with every default filled in
	// Limit is what it may borrow on top; nil is without limit. It names the
	// same resources as Nominal.
	BorrowingLimit Resources
	// LimitOnly tells that the team has no quota here and may only borrow.
	BorrowOnly bool
}

// Resolved is an allocation with nothing left to fill in.
type Resolved struct {
	// Pools stand in the order of the rows, then those that are only borrowed
	// from, by name. All name the same resources.
	Pools []FlavorQuotas
	// Lends tells whether others may use what stands idle.
	Lends bool
}

// Covered lists the resources that the allocation counts, in the order of
// Compare.
func (r Resolved) Covered() []string {
	if len(r.Pools) == 0 {
		return slices.Clone(standard)
	}
	return r.Pools[0].Nominal.Names()
}

// Resolve fills in an allocation against the catalog. All that is wrong is
// returned together, with paths from spec, and nothing is resolved then.
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

// borrowLimit is what a team with this quota may borrow; nil is without limit.
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

// cover has every pool name every resource that any of them counts: Kueue
// wants the flavors of a resource group to list the same resources.
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
