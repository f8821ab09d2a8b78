package enforcement

import (
	admission "k8s.io/api/admissionregistration/v1"
)

// orphans returns the admission policy of deletions. Kueue releases the quota of a
// deleted job, so its pods may not stay behind, as Kubernetes lets them by request,
// by a finalizer, and by default for batch/v1. Each pod of a Deployment has quota of its
// own, CronJobs have no pods of their own, and nothing owns the Jobs of an ElasticJob.
func orphans() *admission.ValidatingAdmissionPolicy {
	p := newPolicy("orphans", "", nil, "")
	spec := &p.Spec
	spec.MatchConstraints.ResourceRules = nil
	for _, k := range kinds {
		if k.kind != "CronJob" && k.kind != "Deployment" {
			spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules, rule(k.group, []string{"*"}, k.resource, admission.Delete))
		}
	}
	spec.MatchConditions = append(spec.MatchConditions, notByController)
	spec.Variables = []admission.Variable{
		{Name: "policy", Expression: "request.options.?propagationPolicy.orValue('')"},
		{Name: "finalizers", Expression: "oldObject.metadata.?finalizers.orValue([])"},
		// What the API server does without a policy.
		{Name: "orphans", Expression: "request.options.?orphanDependents.orValue('orphan' in variables.finalizers || request.resource.group == 'batch' && !('foregroundDeletion' in variables.finalizers))"},
	}
	spec.Validations = []admission.Validation{{
		Expression:        "variables.policy == '' ? !variables.orphans : variables.policy != 'Orphan'",
		MessageExpression: "request.kind.kind + ': its pods would run on without quota. Delete it with the propagationPolicy Background, as kubectl delete does'",
	}}
	return p
}
