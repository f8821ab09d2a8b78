package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"
)

// pools validates pools in the cluster: their names, their labels, and the quota of teams,
// which no change may take a pool from.
func (errs *fieldErrors) pools(pools []v1alpha1.Pool, state State) {
	if len(pools) > v1alpha1.MaxPools {
		return
	}
	for i, pool := range pools {
		at := fmt.Sprintf("spec.pools[%d]", i)
		clash := state.Types.Clashes(v1alpha1.Pool{Name: pool.Name})
		if clash != "" { // which says more than the CRD
			errs.FieldErrors = slices.DeleteFunc(errs.FieldErrors, func(e governance.FieldError) bool { return e.Path == at+".name" })
			errs.Add(at+".name", clash)
		}
		if circular := state.Types.Clashes(pool); clash == "" {
			errs.Add(at+".match.nodeLabels", circular)
		}
		for _, key := range slices.Sorted(maps.Keys(pool.Match.NodeLabels)) {
			if value := pool.Match.NodeLabels[key]; len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
				errs.Addf(at+".match.nodeLabels", "%s=%s is not a valid node label", key, value)
			}
		}
	}
	if !slices.ContainsFunc(errs.FieldErrors, func(e governance.FieldError) bool { return strings.HasPrefix(e.Path, "spec.pools") }) {
		errs.FieldErrors = append(errs.FieldErrors, orphanedQuota(pools, state)...) // errors of invalid pools would mislead
	}
}
