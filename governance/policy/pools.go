package policy

import (
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"
)

// pools validates each pool by itself. It reports whether the catalog can be
// computed with them.
func (errs *fieldErrors) pools(pools []v1alpha1.Pool, state State) bool {
	if len(pools) > v1alpha1.MaxPools {
		errs.Addf("spec.pools", "has %d pools; a policy has at most %d", len(pools), v1alpha1.MaxPools)
		return false
	}
	seen := map[string]bool{}
	for i, pool := range pools {
		at := fmt.Sprintf("spec.pools[%d]", i)
		clash := state.Types.Clashes(v1alpha1.Pool{Name: pool.Name})
		switch problem := checkName(pool.Name); {
		case clash != "":
			errs.Addf(at+".name", "%s", clash)
		case problem != "":
			errs.Addf(at+".name", "%s", problem)
		case seen[pool.Name]:
			errs.Addf(at+".name", "pool %s is listed twice; remove one", pool.Name)
		}
		if circular := state.Types.Clashes(pool); clash == "" && circular != "" {
			errs.Addf(at+".match.nodeLabels", "%s", circular)
		}
		seen[pool.Name] = true
		errs.match(at+".match", pool.Match)
	}
	return true
}

func (errs *fieldErrors) match(at string, match v1alpha1.PoolMatch) {
	criteria := 0
	for _, is := range []bool{match.Accelerator != "", match.InstanceFamily != "", len(match.InstanceTypes) > 0, len(match.NodeLabels) > 0} {
		if is {
			criteria++
		}
	}
	if criteria != 1 {
		errs.Addf(at, "match nodes by exactly one of: an accelerator, an instance family, instance types, or node labels")
		return
	}
	long := func(path, value string) {
		if len(value) > v1alpha1.MaxLabelValue {
			errs.Addf(path, "has %d characters; use at most %d", len(value), v1alpha1.MaxLabelValue)
		}
	}
	long(at+".accelerator", match.Accelerator)
	long(at+".instanceFamily", match.InstanceFamily)
	if len(match.InstanceTypes) > v1alpha1.MaxPoolTypes {
		errs.Addf(at+".instanceTypes", "names %d types; a pool names at most %d", len(match.InstanceTypes), v1alpha1.MaxPoolTypes)
	}
	for i, name := range match.InstanceTypes {
		long(at+".instanceTypes", name)
		switch {
		case name == "":
			errs.Addf(at+".instanceTypes", "one of the types is empty; leave it out")
		case slices.Contains(match.InstanceTypes[:i], name):
			errs.Addf(at+".instanceTypes", "type %s is listed twice; remove one", name)
		}
	}
	if len(match.NodeLabels) > v1alpha1.MaxPoolLabels {
		errs.Addf(at+".nodeLabels", "has %d labels; a pool has at most %d", len(match.NodeLabels), v1alpha1.MaxPoolLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(match.NodeLabels)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(match.NodeLabels[key])) > 0 {
			errs.Addf(at+".nodeLabels", "%s=%s is not a valid node label", key, match.NodeLabels[key])
		}
	}
}
