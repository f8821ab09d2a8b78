package manifest

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/spec/schema"

	"sigs.k8s.io/yaml"
)

// Kuota's kinds.
const (
	KindAllocation = "ComputeAllocation"
	KindPolicy     = "ClusterPolicy"
	KindDepartment = "Department"
)

// written is a resource as users write it: name and spec, without the fields that
// the API server or a controller sets.
type written[Spec any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec Spec `json:"spec"`
}

// AllocationYAML returns an allocation as YAML, with name and spec only.
func AllocationYAML(a *v1alpha1.ComputeAllocation) string {
	return write(KindAllocation, a.Name, *a.Spec.DeepCopy())
}

// DepartmentYAML returns a department as YAML, with name and spec only.
func DepartmentYAML(d *v1alpha1.Department) string {
	return write(KindDepartment, d.Name, *d.Spec.DeepCopy())
}

// PolicyYAML returns the cluster policy as YAML, with name and spec only.
func PolicyYAML(p *v1alpha1.ClusterPolicy) string {
	return write(KindPolicy, v1alpha1.ClusterPolicyName, *p.Spec.DeepCopy())
}

func write[Spec any](kind, name string, spec Spec) string {
	w := written[Spec]{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Spec: spec}
	w.Metadata.Name = name
	text, err := yaml.Marshal(w)
	if err != nil { // specs always encode
		panic(fmt.Sprintf("writing %s %s: %v", kind, name, err))
	}
	return string(text)
}

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

// SanitizeDepartment removes the values from the spec of a department that its CRD does not
// allow, and reports them.
func SanitizeDepartment(spec *v1alpha1.DepartmentSpec, path string) governance.FieldErrors {
	return below(path, schema.Prune(schema.Department, spec))
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
