package submit

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groups are the API groups of the kinds that need an operator.
var groups = map[Kind]string{PyTorchJob: "kubeflow.org", RayJob: "ray.io", JobSet: "jobset.x-k8s.io"}

// missingKinds returns the kinds that the API server does not serve: Kueue's integration
// of a kind can be enabled before its operator is installed. A kind whose discovery fails
// is not in the result.
func missingKinds(kinds []Kind, mapping func(schema.GroupKind, ...string) (*meta.RESTMapping, error)) map[Kind]bool {
	found := map[Kind]bool{}
	for _, kind := range kinds {
		if group := groups[kind]; group != "" {
			if _, err := mapping(schema.GroupKind{Group: group, Kind: string(kind)}); meta.IsNoMatchError(err) {
				found[kind] = true
			}
		}
	}
	return found
}
