package enforcement

import (
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// growthName is the name of the policies of Growth and of their bindings.
const growthName = "kuota-growth"

// growthMark begins the label with the UID of its Job on a Workload of growth. Kueue writes the
// label into the message of each preemption.
const growthMark = "kuota-growth-"

// Growth returns the admission policies that keep growth of elastic tasks from preempting, and
// their bindings. The first marks Workloads of growth; the second denies Kueue to preempt for a
// marked one, which Kueue then reports, and tries again until the increment is deleted. They need
// Kubernetes 1.36.
//
// A request that the API server cannot evaluate is allowed: Kueue must go on.
func Growth() (*admission.MutatingAdmissionPolicy, *admission.MutatingAdmissionPolicyBinding, *admission.ValidatingAdmissionPolicy, *admission.ValidatingAdmissionPolicyBinding) {
	ignore, meta := admission.Ignore, metav1.ObjectMeta{Name: growthName}
	rules := func(resource string, operation admission.OperationType) []admission.NamedRuleWithOperations {
		return []admission.NamedRuleWithOperations{rule(kueueapi.SchemeGroupVersion.Group, []string{kueueapi.SchemeGroupVersion.Version}, resource, operation)}
	}
	typeOf := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: kind}
	}
	const label = "object.metadata.?labels[?'" + constants.JobUIDLabel + "'].orValue('')"
	mark := &admission.MutatingAdmissionPolicy{
		TypeMeta:   typeOf("MutatingAdmissionPolicy"),
		ObjectMeta: meta,
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admission.NeverReinvocationPolicy,
			MatchConstraints:   &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: rules("workloads", admission.Create)},
			MatchConditions: []admission.MatchCondition{{
				Name:       "growth",
				Expression: "object.spec.?priorityClassRef.?name.orValue('') == '" + desired.GrowthClass + "' && " + label + " != ''",
			}},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeJSONPatch,
				JSONPatch: &admission.JSONPatch{Expression: "[JSONPatch{op: 'replace', path: '/metadata/labels/' + jsonpatch.escapeKey('" + constants.JobUIDLabel + "'), value: '" + growthMark + "' + " + label + "}]"},
			}},
		},
	}
	deny := &admission.ValidatingAdmissionPolicy{
		TypeMeta:   typeOf("ValidatingAdmissionPolicy"),
		ObjectMeta: meta,
		Spec: admission.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &ignore,
			MatchConstraints: &admission.MatchResources{ResourceRules: rules("workloads/status", admission.Update)},
			Validations: []admission.Validation{{
				Expression: "!object.?status.?conditions.orValue([]).exists(c, c.type == '" + kueueapi.WorkloadPreempted + "' && c.status == 'True' && c.message.contains('JobUID: " + growthMark + "'))",
				Message:    "growth of an elastic task preempts nothing",
			}},
		},
	}
	return mark, &admission.MutatingAdmissionPolicyBinding{
			TypeMeta:   typeOf("MutatingAdmissionPolicyBinding"),
			ObjectMeta: meta,
			Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: growthName},
		}, deny, &admission.ValidatingAdmissionPolicyBinding{
			TypeMeta:   typeOf("ValidatingAdmissionPolicyBinding"),
			ObjectMeta: meta,
			Spec:       admission.ValidatingAdmissionPolicyBindingSpec{PolicyName: growthName, ValidationActions: []admission.ValidationAction{admission.Deny}},
		}
}
