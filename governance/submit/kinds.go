package submit

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/enforcement"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of job that Kuota writes manifests for, one of enforcement.TaskKinds.
type Kind string

// The kinds, in the order of pages.
const (
	Job        Kind = "Job"
	PyTorchJob Kind = "PyTorchJob"
	RayJob     Kind = "RayJob"
	JobSet     Kind = "JobSet"

	// ElasticJob is the kind of elastic tasks. The manifests of the others cannot grow.
	ElasticJob Kind = v1alpha1.ElasticJobKind
)

// kindsOf returns the kinds that Kueue manages. If Kueue's configuration is unknown, it
// returns those of Kueue's integration for Jobs, which is on by default, and false.
func kindsOf(policy *v1alpha1.ClusterPolicy) (kinds []Kind, known bool) {
	integrations := []string{job.Framework}
	if policy != nil && policy.Status.Kueue != nil && len(policy.Status.Kueue.Integrations) > 0 {
		integrations, known = policy.Status.Kueue.Integrations, true
	}
	for _, kind := range []Kind{Job, PyTorchJob, RayJob, JobSet, ElasticJob} {
		if k, _ := enforcement.TaskKind(string(kind)); slices.Contains(integrations, k.Framework) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, known
}

var job, _ = enforcement.TaskKind(string(Job))

// isServed reports whether the API server serves a kind: Kueue's integration of a kind can
// be enabled before its operator is installed. It reports true if discovery fails.
func isServed(kind enforcement.JobKind, mapping func(schema.GroupKind, ...string) (*meta.RESTMapping, error)) bool {
	_, err := mapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	return !meta.IsNoMatchError(err)
}

// allowed returns those of kinds that user can create in a namespace. The API server
// authorizes the request again.
func (s *Service) allowed(ctx context.Context, user governance.User, kinds []Kind, namespace string) (allowed []Kind, err error) {
	for _, kind := range kinds {
		k, _ := enforcement.TaskKind(string(kind))
		if !isServed(k, s.Cluster.RESTMapping) {
			continue
		}
		may, err := s.Access.May(ctx, user, "create", schema.GroupVersionResource{Group: k.Group, Resource: k.Resource}, namespace)
		if err != nil {
			return nil, err
		}
		if may {
			allowed = append(allowed, kind)
		}
	}
	return allowed, nil
}
