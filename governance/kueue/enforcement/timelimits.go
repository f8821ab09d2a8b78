package enforcement

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/describe"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TimeLimitLabel is the label of a job from which Kueue sets
// spec.maximumExecutionTimeSeconds of its Workload. Kueue deactivates a Workload that
// was admitted for so long in total.
const TimeLimitLabel = "kueue.x-k8s.io/max-exec-time-seconds"

// The names of the mutating policies that set default time limits, and of their
// bindings.
const (
	defaultTimeLimits        = "kuota-time-limits"
	defaultElasticTimeLimits = "kuota-time-limits-elasticjobs"
)

// timeLimits returns the parameter with the time limits of classes, as
// class=default=maximum=maximum in words, in seconds and 0 for none.
func timeLimits(classes []v1alpha1.PriorityClass) string {
	var rows []string
	for _, c := range classes {
		if byDefault, maximum := c.TimeLimits(); byDefault > 0 {
			rows = append(rows, fmt.Sprintf("%s=%d=%d=%s", desired.PriorityClassName(c.Name), byDefault, maximum, describe.Seconds(c.MaximumTimeLimitSeconds)))
		}
	}
	return strings.Join(rows, ",")
}

// timeLimitVariables are the maximum of the task's class, as a list of at most one row
// of the parameter, and the task's own time limit: 0 for none, and for a value that
// Kueue ignores.
func (k kind) timeLimitVariables() []admission.Variable {
	own := fmt.Sprintf(k.timeLimit, "object") + ".orValue(0)"
	if k.timeLimit == "" {
		own = "variables.labels[?'" + TimeLimitLabel + "'].orValue('').matches('^[1-9][0-9]{0,9}$') ? int(variables.labels['" + TimeLimitLabel + "']) : 0"
	}
	return []admission.Variable{
		{Name: "maximum", Expression: "params.?data[?'timeLimits'].orValue('').split(',').map(l, l.split('=')).filter(l, l[0] == variables.cls && l.size() == 4 && l[2] != '0')"},
		{Name: "seconds", Expression: own},
	}
}

// sameTimeLimit reports whether an existing task keeps its queue, its class and its time
// limit: it may keep them after the policy changed.
const sameTimeLimit = "oldObject != null && ['" + queueLabel + "', '" + classLabel + "', '" + TimeLimitLabel + "'].all(k, object.metadata.?labels[?k] == oldObject.metadata.?labels[?k])"

// timeLimitValidation requires that a task of a class with a maximum has a time limit,
// and none above it. Mutating policies run before and set the default.
func (k kind) timeLimitValidation() admission.Validation {
	const within = "variables.seconds > 0 && variables.seconds <= int(m[2])"
	allowed := sameTimeLimit + " || variables.maximum.all(m, " + within + ")"
	fix := "set the label " + TimeLimitLabel + k.labelPlace() + " to ' + m[2] + ' or less"
	switch k.kind {
	case "Job": // only Kuota sets that label, on parts of an ElasticJob, which has the limit: see members.yaml
		allowed = "'" + v1alpha1.LabelElasticJob + "' in variables.labels || " + allowed
	case "CronJob": // its Jobs get the default
		allowed = "variables.maximum.all(m, " + within + " || !('" + TimeLimitLabel + "' in variables.labels))"
	case "Deployment": // Kueue ignores its label
		allowed = sameTimeLimit + " || variables.maximum.size() == 0"
		fix = "Kueue cannot limit a Deployment, so use another class"
	case "ElasticJob":
		allowed = sameTimeLimit + " && " + fmt.Sprintf(k.timeLimit, "object") + " == " + fmt.Sprintf(k.timeLimit, "oldObject") + " || variables.maximum.all(m, " + within + ")"
		fix = "set spec.activeDeadlineSeconds to ' + m[2] + ' or less"
	case "Pod": // pods of a StatefulSet lack its labels
		allowed = user + " in " + controllers + " || " + allowed
	}
	return admission.Validation{
		Expression:        allowed,
		MessageExpression: "variables.maximum.map(m, '" + k.kind + ": tasks of priority class ' + m[0] + ' have a time limit of at most ' + m[3] + ': " + fix + "')[0]",
	}
}

// MutatingPolicies returns the admission policies that set the default time limit on a
// new task that names none, and their bindings. They need Kubernetes 1.36. Kueue
// rejects a change of the time limit of a task that runs, so existing tasks are not
// changed.
func MutatingPolicies() ([]*admission.MutatingAdmissionPolicy, []*admission.MutatingAdmissionPolicyBinding) {
	labeled := []kind{{versions: []string{"v1"}, resource: "pods"}}
	for _, k := range kinds {
		if k.kind != "CronJob" && k.kind != "Deployment" {
			labeled = append(labeled, k)
		}
	}
	policies := []*admission.MutatingAdmissionPolicy{
		defaultTimeLimit(defaultTimeLimits, labeled, ownOrMoved(TimeLimitLabel), "/metadata/labels/"+strings.ReplaceAll(TimeLimitLabel, "/", "~1"), "%s"),
		defaultTimeLimit(defaultElasticTimeLimits, []kind{elasticJobs}, fmt.Sprintf(elasticJobs.timeLimit, "object"), "/spec/activeDeadlineSeconds", "int(%s)"),
	}
	var bindings []*admission.MutatingAdmissionPolicyBinding
	for _, p := range policies {
		bindings = append(bindings, &admission.MutatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "MutatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: p.Name, ParamRef: paramRef()},
		})
	}
	return policies, bindings
}

// MutatingPolicyNames returns the names of the mutating policies, which their bindings
// share.
func MutatingPolicyNames() []string { return []string{defaultTimeLimits, defaultElasticTimeLimits} }

// defaultTimeLimit returns the policy that sets the default of the class at path if
// limit, an optional, has no value. value formats the default, a string.
func defaultTimeLimit(name string, of []kind, limit, path, value string) *admission.MutatingAdmissionPolicy {
	fail := admission.Fail
	var rules []admission.NamedRuleWithOperations
	for _, k := range of {
		rules = append(rules, rule(k.group, k.versions, k.resource, admission.Create))
	}
	defaults := "params.?data[?'timeLimits'].orValue('').split(',').map(l, l.split('=')).filter(l, l[0] == " + ownOrMoved(classLabel) + ".orValue('') && l.size() == 4 && l[1] != '0')"
	return &admission.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &fail,
			ReinvocationPolicy: admission.IfNeededReinvocationPolicy,
			ParamKind:          paramKind(),
			MatchConstraints:   &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: rules},
			// A request that meets all of them is rejected while the API server has not read
			// the schema of its kind.
			MatchConditions: []admission.MatchCondition{
				enforced, notByController,
				notPartOfAnother,
				{Name: "names-no-time-limit", Expression: "!" + limit + ".hasValue()"},
				{Name: "class-has-default", Expression: defaults + ".size() > 0"},
			},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeJSONPatch,
				JSONPatch: &admission.JSONPatch{Expression: "[JSONPatch{op: 'add', path: '" + path + "', value: " + fmt.Sprintf(value, defaults+"[0][1]") + "}]"},
			}},
		},
	}
}
