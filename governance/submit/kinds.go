package submit

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/enforcement"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
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

// maxName bounds names, in characters: pods are named after their task and their place in
// it, and have labels with it. Those of a StatefulSet have a label with a hash of ten
// digits. A LeaderWorkerSet has a StatefulSet for each replica, whose name ends with up to
// four more. KubeRay bounds a RayJob itself, but only after it was created.
var maxName = map[Kind]int{Job: validation.DNS1123LabelMaxLength, PyTorchJob: 51, RayJob: 47, JobSet: 42, Deployment: validation.DNS1035LabelMaxLength, StatefulSet: 52, LeaderWorkerSet: 48, ElasticJob: v1alpha1.MaxElasticJobName}

// checkName returns why an object of the kind cannot have a name; empty if it can. Of all
// kinds but Jobs, Services are named like it.
func (k Kind) checkName(name string) string {
	switch most := maxName[k]; {
	case len(name) > most:
		return fmt.Sprintf("has %d characters; the name of a %s has at most %d", len([]rune(name)), k, most)
	case len(validation.IsDNS1123Label(name)) > 0:
		return "use lower-case letters, digits and hyphens; start and end with a letter or digit"
	case k != Job && len(validation.IsDNS1035Label(name)) > 0:
		return "start with a letter: Services are named like it"
	}
	return ""
}

// kindsOf returns the kinds that Kueue manages. If Kueue's configuration is unknown, it
// returns those of Kueue's integration for Jobs, which is on by default, and false.
func kindsOf(policy *v1alpha1.ClusterPolicy) (kinds []Kind, known bool) {
	integrations := []string{job.Framework}
	if policy != nil && policy.Status.Kueue != nil && len(policy.Status.Kueue.Integrations) > 0 {
		integrations, known = policy.Status.Kueue.Integrations, true
	}
	return managedBy(integrations, Job, PyTorchJob, RayJob, JobSet, ElasticJob), known
}

// managedBy returns those of kinds that integrations of Kueue manage.
func managedBy(integrations []string, kinds ...Kind) (managed []Kind) {
	for _, kind := range kinds {
		if k, _ := enforcement.TaskKind(string(kind)); slices.Contains(integrations, k.Framework) {
			managed = append(managed, kind)
		}
	}
	return managed
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
