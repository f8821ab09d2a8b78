package submit

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueueconfig"
)

// Kind is a kind of job that Kuota writes manifests for.
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

// integrations are the names of the kinds in Kueue's configuration (0.19).
var integrations = []struct {
	kind Kind
	name string
}{
	{Job, kueueconfig.BatchJob},
	{PyTorchJob, "kubeflow.org/pytorchjob"},
	{RayJob, "ray.io/rayjob"},
	{JobSet, "jobset.x-k8s.io/jobset"},
}

// kindsOf returns the kinds that Kueue manages. If Kueue's configuration is unknown, it
// returns Job, which Kueue manages by default, and false.
func kindsOf(policy *v1alpha1.ClusterPolicy) (kinds []Kind, known bool) {
	if policy == nil || policy.Status.Kueue == nil || len(policy.Status.Kueue.Integrations) == 0 {
		return []Kind{Job}, false
	}
	for _, i := range integrations {
		if slices.Contains(policy.Status.Kueue.Integrations, i.name) {
			kinds = append(kinds, i.kind)
		}
	}
	return kinds, true
}
