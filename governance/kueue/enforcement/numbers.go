package enforcement

import (
	"fmt"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// numbersName is the name of the policy of Numbers and of its binding.
const numbersName = "kuota-priorities"

// Parts of expressions about priorities by number.
const (
	numbersAllowed = "params.?data[?'numericPriorities'].orValue('') == 'true'"
	isNumber       = ".matches('^[0-9]{1,2}$')" // 042 is not one, and 07 is 7
)

// numbers returns the parameter that allows priorities by number.
func numbers(policy *v1alpha1.ClusterPolicySpec) string {
	return strconv.FormatBool(policy.NumericPriorities)
}

// numberOf is CEL for the number that metadata, an optional, names: a string, as an optional.
func numberOf(metadata string) string {
	return fmt.Sprintf("%[1]s.?labels[?'%[2]s'].or(%[1]s.?annotations[?'%[2]s'])", metadata, desired.PriorityLabel)
}

// Numbers returns the admission policy that turns the priority by number of a task into its
// priority class, and its binding. It needs Kubernetes 1.36. A new task can name the number
// in its pod template too, as a label of TemplateLabels. The number is removed from the metadata
// of the task, so that a priority has one place; pods keep theirs.
//
// A number that it does not turn into a class is rejected by the policies of Policies, which
// follow.
func Numbers() (*admission.MutatingAdmissionPolicy, *admission.MutatingAdmissionPolicyBinding) {
	rules := []admission.NamedRuleWithOperations{rule("", []string{"v1"}, "pods", admission.Create)} // Kueue reads their class once
	for _, k := range append([]kind{elasticJobs}, kinds...) {
		if k.labelsAt == "" { // a CronJob gives the number to its Jobs
			rules = append(rules, rule(k.group, k.versions, k.resource, admission.Create, admission.Update))
		}
	}
	const (
		label = "object.metadata.?labels[?'" + classLabel + "']"
		// A client that applies the number again leaves the class as it is, or out.
		unchanged  = "(oldObject == null ? !" + label + ".or(" + withTemplate + "[?'" + classLabel + "']).hasValue() : !" + label + ".hasValue() || " + label + " == oldObject.metadata.?labels[?'" + classLabel + "'])"
		escaped    = "kuota.dev~1priority"
		removeFrom = "('" + desired.PriorityLabel + "' in object.metadata.?%[1]s.orValue({}) && object.metadata.%[1]s['" + desired.PriorityLabel + "'] == variables.number ? [JSONPatch{op: 'remove', path: '/metadata/%[1]s/" + escaped + "'}] : [])"
	)
	ofTask := numberOf("object.metadata")
	number := "(oldObject == null ? " + ofTask + ".or(" + numberOf("object.?spec.?template.?metadata") + ") : " + ofTask + " == " + numberOf("oldObject.metadata") + " ? optional.none() : " + ofTask + ").orValue('')"
	ignore, meta := admission.Ignore, metav1.ObjectMeta{Name: numbersName}
	policy := &admission.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admission.IfNeededReinvocationPolicy,
			ParamKind:          paramKind(),
			MatchConstraints:   &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: rules},
			MatchConditions: []admission.MatchCondition{
				{Name: "allowed", Expression: numbersAllowed},
				notPartOfAnother,
				{Name: "names-number", Expression: number + isNumber},
				{Name: "names-no-other-class", Expression: unchanged},
			},
			Variables: []admission.Variable{{Name: "number", Expression: number}},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeJSONPatch,
				JSONPatch: &admission.JSONPatch{Expression: "(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]) + " +
					"[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('" + classLabel + "'), value: '" + desired.NumberPrefix + "' + string(int(variables.number))}] + " +
					fmt.Sprintf(removeFrom, "labels") + " + " + fmt.Sprintf(removeFrom, "annotations")},
			}},
		},
	}
	return policy, &admission.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: numbersName, ParamRef: paramRef()},
	}
}

// numberVariables are the numbers that a task and its pod templates name and that are not its
// class, as a list of strings. They need the variable templates.
func (k kind) numberVariables() []admission.Variable {
	metadata := "object.metadata"
	if k.labelsAt != "" {
		metadata = k.labelsAt
	}
	all := "[" + metadata + ".?labels[?'" + desired.PriorityLabel + "'].orValue(''), " + metadata + ".?annotations[?'" + desired.PriorityLabel + "'].orValue('')]"
	if k.templates != "" && !k.nested {
		all += " + variables.templates.map(t, " + numberOf("t.?metadata") + ".orValue(''))"
	}
	return []admission.Variable{{Name: "numbers", Expression: "(" + all + ").filter(n, n != '' && !(n" + isNumber + " && variables.cls == '" + desired.NumberPrefix + "' + string(int(n))))"}}
}

// numberValidation rejects priorities by number that Numbers did not turn into a class. Jobs of
// a CronJob get the number; parts of others have the class that their owner has.
func (k kind) numberValidation() admission.Validation {
	const place = "'" + desired.PriorityLabel + "'"
	allowed := "variables.numbers.size() == 0 || !(" + notPartOfAnother.Expression + ")"
	if k.labelsAt != "" {
		allowed += " || " + numbersAllowed + " && variables.cls == '' && variables.numbers.all(n, n == variables.numbers[0] && n" + isNumber + ")"
	} else {
		allowed += " || oldObject != null && " + numberOf("object.metadata") + " == " + numberOf("oldObject.metadata")
	}
	return admission.Validation{
		Expression: allowed,
		MessageExpression: "'" + k.kind + ": ' + (" +
			"!(" + numbersAllowed + ") ? 'the cluster policy allows no priority by number: remove ' + " + place + " + ', and set the label " + classLabel + "' : " +
			"!variables.numbers[0]" + isNumber + " ? " + place + " + ' is ' + variables.numbers[0] + ', and must be a whole number from 0 to 99' : " +
			"variables.cls != '' ? 'it has the priority ' + variables.numbers[0] + ' and the priority class ' + variables.cls + ': remove ' + " + place + " + ' or the label " + classLabel + "' : " +
			"'the API server does not set the priority class of ' + " + place + " + ' here: set the label " + classLabel + k.labelPlace() + " to " + desired.NumberPrefix + "' + string(int(variables.numbers[0])) + ' instead')",
	}
}
