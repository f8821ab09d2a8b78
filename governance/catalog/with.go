package catalog

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// With is the catalog as it would be with more pools in the policy: what a
// form shows of pools that are made when it is saved.
func (c Catalog) With(pools ...v1alpha1.Pool) Catalog {
	if len(pools) == 0 {
		return c
	}
	in := c.in
	in.Pools = slices.Concat(in.Pools, pools)
	return New(in)
}
