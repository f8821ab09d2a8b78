package enforcement

import (
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// templateLabels is the name of the policy of TemplateLabels and of its binding.
const templateLabels = "kuota-template-labels"

// withTemplate is CEL for the pod template at spec.template of a kind that has one.
const withTemplate = "object.?spec.?template.?metadata.?labels"

// ownOrMoved is CEL for a label that a new task has after TemplateLabels, an optional. The API
// server invokes mutating policies in any order, and none again whose conditions were false.
func ownOrMoved(label string) string {
	return "object.metadata.?labels[?'" + label + "'].or(" + withTemplate + "[?'" + label + "'])"
}

// TemplateLabels returns the admission policy that copies the labels that Kueue reads of a
// task from its pod template, if the task lacks them, and its binding. It applies to kinds with
// one pod template at spec.template; a task of another kind is rejected with what to move. It
// needs Kubernetes 1.36. The pods keep the labels: Kueue ignores those in pods of a task.
//
// A request that the API server cannot evaluate is not rejected here, because the policies
// of Policies follow.
func TemplateLabels() (*admission.MutatingAdmissionPolicy, *admission.MutatingAdmissionPolicyBinding) {
	var rules []admission.NamedRuleWithOperations
	for _, k := range append([]kind{elasticJobs}, kinds...) {
		if k.templates == "[%s.spec.template]" {
			rules = append(rules, rule(k.group, k.versions, k.resource, admission.Create))
		}
	}
	const own = "object.metadata.?labels.orValue({})"
	const missing = "['" + queueLabel + "', '" + classLabel + "', '" + TimeLimitLabel + "'].filter(l, !(l in " + own + ") && l in " + withTemplate + ".orValue({}))"
	ignore, meta := admission.Ignore, metav1.ObjectMeta{Name: templateLabels}
	policy := &admission.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admission.IfNeededReinvocationPolicy,
			MatchConstraints:   &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: rules},
			MatchConditions:    []admission.MatchCondition{notPartOfAnother, {Name: "labels-missing", Expression: missing + ".size() > 0"}},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeJSONPatch,
				JSONPatch: &admission.JSONPatch{Expression: "(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]) + " +
					missing + ".map(l, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(l), value: object.spec.template.metadata.labels[l]})"},
			}},
		},
	}
	return policy, &admission.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: templateLabels},
	}
}
