package enforcement

import (
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultsName is the name of the policy of Defaults and of its binding.
const defaultsName = "kuota-defaults"

// Defaults returns the admission policy that gives a new task what its team set for tasks that
// name none: the queue of its kind, and the priority class of its queue; and its binding. It
// needs Kubernetes 1.36. A task that names a queue or a class, also in its pod template, or a
// priority by number, keeps it.
func Defaults() (*admission.MutatingAdmissionPolicy, *admission.MutatingAdmissionPolicyBinding) {
	var rules []admission.NamedRuleWithOperations
	for _, k := range append([]kind{elasticJobs}, kinds...) {
		if k.labelsAt == "" { // a CronJob's Jobs get it
			rules = append(rules, rule(k.group, k.versions, k.resource, admission.Create))
		}
	}
	ignore, meta := admission.Ignore, metav1.ObjectMeta{Name: defaultsName}
	// line returns CEL for the rest of the line of the annotation that begins with a text, or ''.
	line := func(begin string) string {
		return "(variables.lines.filter(l, l.startsWith(" + begin + ")).map(l, l.substring(size(" + begin + "))) + [''])[0]"
	}
	policy := &admission.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admission.IfNeededReinvocationPolicy,
			MatchConstraints:   &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: rules},
			MatchConditions:    []admission.MatchCondition{notPartOfAnother},
			Variables: []admission.Variable{
				{Name: "lines", Expression: "namespaceObject.metadata.?annotations[?'" + desired.AnnotationDefaults + "'].orValue('').split('\\n')"},
				{Name: "named", Expression: ownOrMoved(queueLabel) + ".orValue('')"},
				{Name: "queue", Expression: "variables.named != '' ? '' : " + line("'queue ' + object.kind + ' '")},
				{Name: "of", Expression: "variables.named != '' ? variables.named : variables.queue != '' ? variables.queue : '" + desired.DefaultQueueName + "'"},
				{Name: "class", Expression: ownOrMoved(classLabel) + ".hasValue() || " + numberOf("object.metadata") + ".or(" + numberOf("object.?spec.?template.?metadata") + ").hasValue() ? '' : " + line("'class ' + variables.of + ' '")},
			},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeJSONPatch,
				JSONPatch: &admission.JSONPatch{Expression: "variables.queue == '' && variables.class == '' ? [] : (has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]) + " +
					"(variables.queue == '' ? [] : [JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('" + queueLabel + "'), value: variables.queue}]) + " +
					"(variables.class == '' ? [] : [JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('" + classLabel + "'), value: variables.class}])"},
			}},
		},
	}
	return policy, &admission.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: defaultsName},
	}
}
