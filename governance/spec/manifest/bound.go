package manifest

import (
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/spec/schema"
)

// SanitizeName clears an invalid team name, and reports it.
func SanitizeName(name *string, path string) (problems governance.FieldErrors) {
	if problem := quota.CheckTeamName(*name); problem != "" {
		if *name == "" {
			problem = "is missing: " + problem
		}
		problems.Addf(path, "%s", problem)
		*name = ""
	}
	return problems
}

// SanitizeSpec removes the values from the spec of an allocation that its CRD does
// not allow, and reports them.
func SanitizeSpec(spec *v1alpha1.ComputeAllocationSpec, path string) governance.FieldErrors {
	return below(path, schema.Prune(schema.ComputeAllocation, spec))
}

// SanitizePolicy removes the values from the spec of a policy that its CRD does
// not allow, and reports them.
func SanitizePolicy(spec *v1alpha1.ClusterPolicySpec, path string) governance.FieldErrors {
	return below(path, schema.Prune(schema.ClusterPolicy, spec))
}

// below replaces "spec" in paths.
func below(path string, problems governance.FieldErrors) governance.FieldErrors {
	for i := range problems {
		problems[i].Path = path + strings.TrimPrefix(problems[i].Path, "spec")
	}
	return problems
}
