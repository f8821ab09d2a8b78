package policy

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
)

// Warnings returns what a policy names that does not exist: pools of limits and prices, resources of
// prices, and Secrets, teams and departments of receivers. Such a policy is valid, since they can be created later, and prices of
// deleted pools are kept. secrets are those in the namespace of the console; nil where they
// are not known. It is pure.
func Warnings(spec *v1alpha1.ClusterPolicySpec, state State, secrets []string) []governance.FieldError {
	var warnings governance.FieldErrors
	for i, limit := range spec.OverAllocationLimits {
		if limit.Pool != v1alpha1.AllPools && !state.knowsPool(limit.Pool, spec.Pools) {
			warnings.Addf(fmt.Sprintf("spec.overAllocationLimits[%d].pool", i), "there is no pool %s now", limit.Pool)
		}
	}
	if spec.Prices != nil {
		for i, price := range spec.Prices.Hourly {
			if !state.knowsPool(price.Pool, spec.Pools) {
				warnings.Addf(fmt.Sprintf("spec.prices.hourly[%d].pool", i), "there is no pool %s now", price.Pool)
			} else if slices.ContainsFunc(state.Types.Pools(), func(p catalog.Pool) bool {
				return p.Name == price.Pool && len(p.Physical) > 0 && p.Physical[price.Resource] == 0
			}) {
				warnings.Addf(fmt.Sprintf("spec.prices.hourly[%d].resource", i), "the nodes of this pool have none of it: the price has no effect")
			}
		}
	}
	if spec.Alerts == nil {
		return warnings
	}
	for i, r := range spec.Alerts.Receivers {
		at := fmt.Sprintf("spec.alerts.receivers[%d].", i)
		if secrets != nil && !slices.Contains(secrets, r.SecretName) {
			warnings.Addf(at+"secretName", "there is no Secret %s in the namespace of the console: nothing can be sent", r.SecretName)
		}
		if r.Team != "" && !slices.ContainsFunc(state.teams, func(a *v1alpha1.ComputeAllocation) bool { return a.Name == r.Team }) {
			warnings.Addf(at+"team", "there is no team %s", r.Team)
		}
		if r.Department != "" && !slices.Contains(state.departments, r.Department) {
			warnings.Addf(at+"department", "there is no department %s", r.Department)
		}
	}
	return warnings
}

// knowsPool reports whether nodes, the quota of a team or these pools have a pool.
func (s State) knowsPool(name string, pools []v1alpha1.Pool) bool {
	if name == "" || slices.ContainsFunc(pools, func(p v1alpha1.Pool) bool { return p.Name == name }) {
		return true
	}
	if slices.ContainsFunc(s.Types.Pools(), func(p catalog.Pool) bool { return p.Name == name }) {
		return true
	}
	for i := range s.teams {
		for _, row := range s.teams[i].Spec.Quota {
			if row.Pool == name || row.InstanceType == name {
				return true
			}
		}
	}
	return false
}

// SecretNames returns the names of the Secrets that receivers of alerts can name; nil where
// they are not known.
func (s *Service) SecretNames(ctx context.Context, user governance.User) ([]string, error) {
	if err := access.Require(ctx, user, s.Access.MayEditPolicy, "list secrets"); err != nil {
		return nil, err
	}
	if s.Secrets == nil {
		return nil, nil
	}
	return s.Secrets(ctx)
}
