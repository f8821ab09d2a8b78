package catalog

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// With returns the catalog with more pools in the policy, for forms that create
// pools when they are saved.
func (c Catalog) With(pools ...v1alpha1.Pool) Catalog {
	if len(pools) == 0 {
		return c
	}
	in := c.in
	in.Pools = slices.Concat(in.Pools, pools)
	return New(in)
}
