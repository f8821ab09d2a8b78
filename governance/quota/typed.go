package quota

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	"k8s.io/utils/ptr"
)

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
		switch {
		case name == catalog.CPU:
			row.VCPU = ptr.To(amount.Quantity(name))
		case name == catalog.Memory:
			row.Memory = ptr.To(amount.Quantity(name))
		case strings.Contains(name, "/mig-"):
			_, profile, _ := strings.Cut(name, "/")
			row.Partition = &v1alpha1.Partition{Profile: profile, Count: int64(amount)}
		case name != catalog.Network:
			row.Accelerators = ptr.To(int64(amount))
		}
		row.Instances = nil
	}
	resolved, errs := Resolve(&next, types)
	return resolved, len(errs) == 0
}
