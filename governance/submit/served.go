package submit

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groups are the API groups of the kinds that not every cluster has.
var groups = map[Kind]string{PyTorchJob: "kubeflow.org", RayJob: "ray.io", JobSet: "jobset.x-k8s.io"}

// missing are those of some kinds that the API server does not have: Kueue's
// integration of a kind may be on long before its operator is installed. What
// cannot be asked is not known to be missing.
func missing(kinds []Kind, mapping func(schema.GroupKind, ...string) (*meta.RESTMapping, error)) map[Kind]bool {
	missing := map[Kind]bool{}
	for _, kind := range kinds {
		if group := groups[kind]; group != "" {
			if _, err := mapping(schema.GroupKind{Group: group, Kind: string(kind)}); meta.IsNoMatchError(err) {
				missing[kind] = true
			}
		}
	}
	return missing
}
