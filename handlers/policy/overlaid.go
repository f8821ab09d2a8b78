package policy

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
)

// Overlaid returns now with the imported policy, as the form that the import opens saves it: it keeps
// what HyperPod does not have, and what no form has.
func Overlaid(now *v1alpha1.ClusterPolicy, o imports.Object) *v1alpha1.ClusterPolicy {
	merged, imported := now.DeepCopy(), overlaidPolicy(now, o)
	for _, p := range parts {
		p.copy(&merged.Spec, &imported.Spec)
	}
	return merged
}
