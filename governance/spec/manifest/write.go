package manifest

import (
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"sigs.k8s.io/yaml"
)

// Kuota's kinds.
const (
	KindAllocation = "ComputeAllocation"
	KindPolicy     = "ClusterPolicy"
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
