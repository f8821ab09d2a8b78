package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/spec/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate returns all errors of a policy, by itself and in the cluster as it is
// now, with paths from spec. It is pure.
func Validate(policy *v1alpha1.ClusterPolicy, state State) []governance.FieldError {
	errs := fieldErrors{byCRD(policy)}
	errs.usage(policy.Spec.AdmissionFairSharing)
	errs.times(&policy.Spec)
	errs.prices(policy.Spec.Prices)
	errs.pools(policy.Spec.Pools, state)
	return errs.FieldErrors
}

// ValidatePools returns the errors of pools, by themselves and with the quota of
// teams: no change may take a pool from the quota of a team. The controller
// keeps the applied pools for the same reasons. It is pure.
func ValidatePools(pools []v1alpha1.Pool, state State) []governance.FieldError {
	errs := fieldErrors{byCRD(&v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Pools: pools}})}
	errs.pools(pools, state)
	return errs.FieldErrors
}

// byCRD returns what the CRD rejects in a policy. Errors of resource weights are about their
// map, and name the resource; each has one.
func byCRD(policy *v1alpha1.ClusterPolicy) (errs governance.FieldErrors) {
	const weights = "spec.admissionFairSharing.resourceWeights"
	object := policy.DeepCopy()
	object.Name = v1alpha1.ClusterPolicyName
	seen := map[string]bool{}
	for _, e := range schema.ClusterPolicy.Validate(object, nil) {
		if name, ok := strings.CutPrefix(e.Path, weights+"."); ok {
			e = governance.FieldError{Path: weights, Message: name + ": " + e.Message}
			if seen[name] {
				e.Message = ""
			}
			seen[name] = true
		}
		errs.Add(e.Path, e.Message)
	}
	return errs
}

// times rejects times of 0s, which API servers accept and Kueue does not act upon.
func (errs *fieldErrors) times(spec *v1alpha1.ClusterPolicySpec) {
	positive := func(path string, t *metav1.Duration, problem string) {
		if t != nil && t.Duration == 0 {
			errs.Add(path, problem)
		}
	}
	positive("spec.gangScheduling.timeout", spec.GangScheduling.Timeout, "must be longer than 0s, such as 5m")
	if usage := spec.AdmissionFairSharing; usage != nil {
		positive("spec.admissionFairSharing.usageHalfLifeTime", usage.UsageHalfLifeTime, "must be longer than 0s, such as 24h: with 0s Kueue ignores usage")
		positive("spec.admissionFairSharing.usageSamplingInterval", usage.UsageSamplingInterval, "must be longer than 0s, such as 5m")
	}
}

// fieldErrors collects the errors of a policy.
type fieldErrors struct{ governance.FieldErrors }

func (errs *fieldErrors) prices(prices *v1alpha1.Prices) {
	if prices == nil {
		return
	}
	for i := range prices.Hourly {
		if _, err := prices.Hourly[i].Time(); err != nil && prices.Hourly[i].From != "" {
			errs.Addf(fmt.Sprintf("spec.prices.hourly[%d].from", i), "write the beginning as 2026-10-01 or 2026-10-01T12:00:00Z, in UTC")
		}
	}
}

func (errs *fieldErrors) usage(usage *v1alpha1.AdmissionFairSharing) {
	if usage == nil {
		return
	}
	weights := kueueconfig.ResourceWeights(usage)
	if !slices.ContainsFunc(slices.Collect(maps.Values(weights)), func(w int) bool { return w > 0 }) {
		errs.Addf("spec.admissionFairSharing.resourceWeights", "give at least one resource a weight above 0")
	}
}

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
