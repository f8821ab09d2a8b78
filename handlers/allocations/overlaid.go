package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
)

// Overlaid returns found with the imported spec, as the form that the import opens saves it: it keeps
// what HyperPod does not have, and what no form has.
func Overlaid(found *v1alpha1.ComputeAllocation, o imports.Object) *v1alpha1.ComputeAllocation {
	merged := overlaid(found, o)
	keepAdopted(&merged.Spec, &found.Spec)
	return merged
}
