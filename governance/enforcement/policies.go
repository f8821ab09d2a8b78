package enforcement

import (
	"fmt"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Prefix begins the name of every policy and binding.
const Prefix = "kuota-enforcement-"

// Labels that Kueue reads and writes.
const (
	queueLabel  = "kueue.x-k8s.io/queue-name"
	classLabel  = "kueue.x-k8s.io/priority-class"
	podsetLabel = "kueue.x-k8s.io/podset"
	gateName    = "kueue.x-k8s.io/admission"
)

// Policies are all admission policies with their bindings, by name.
func Policies() ([]*admission.ValidatingAdmissionPolicy, []*admission.ValidatingAdmissionPolicyBinding) {
	var policies []*admission.ValidatingAdmissionPolicy
	for _, k := range kinds {
		policies = append(policies, k.policy())
	}
	policies = append(policies, pods())
	var bindings []*admission.ValidatingAdmissionPolicyBinding
	for _, p := range policies {
		bindings = append(bindings, binding(p.Name))
	}
	return policies, bindings
}

// Names are those of the policies and of their bindings.
func PolicyNames() []string {
	var names []string
	policies, _ := Policies()
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}

// governed selects the namespaces of teams.
var teamNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"kuota.dev/governed": "true"}}

// binding has a policy act in governed namespaces, by what the console wrote
// down; where that is not there, it refuses nothing.
func binding(name string) *admission.ValidatingAdmissionPolicyBinding {
	allow := admission.AllowAction
	return &admission.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admission.ValidationAction{admission.Deny},
			ParamRef:          &admission.ParamRef{Name: ConfigMapName, Namespace: "kuota-system", ParameterNotFoundAction: &allow},
		},
	}
}

func newPolicy(name, group string, versions []string, resource string, operations ...admission.OperationType) *admission.ValidatingAdmissionPolicy {
	fail := admission.Fail
	return &admission.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: Prefix + name},
		Spec: admission.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			ParamKind:     &admission.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			// Here rather than in the binding, so that whatever goes wrong with a
			// policy goes wrong in governed namespaces only.
			MatchConstraints: &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
				Operations: operations,
				Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: versions, Resources: []string{resource}},
			}}}},
			MatchConditions: []admission.MatchCondition{{Name: "enforced", Expression: "params.?data[?'enforcement'].orValue('') == 'RequireQueue'"}},
		},
	}
}

// Parts of expressions.
const (
	user        = "request.userInfo.username"
	kueue       = "params.?data[?'kueue'].orValue('')"
	controllers = "params.?data[?'controllers'].orValue('').split(',')"
)

// variables that every policy has. Lists are written with commas, and a grouped
// type with its pools as type=pool=pool.
var variables = []admission.Variable{
	{Name: "queue", Expression: "variables.labels[?'" + queueLabel + "'].orValue('')"},
	{Name: "cls", Expression: "variables.labels[?'" + classLabel + "'].orValue('')"},
	{Name: "classes", Expression: "params.?data[?'classes'].orValue('').split(',').filter(c, c != '')"},
	{Name: "integrations", Expression: "params.?data[?'integrations'].orValue('').split(',')"},
	{Name: "typeLabel", Expression: "params.?data[?'instanceTypeLabel'].orValue('node.kubernetes.io/instance-type')"},
	{Name: "grouped", Expression: "params.?data[?'groupedTypes'].orValue('').split(',').filter(g, g != '').map(g, g.split('='))"},
}

// class says that the priority class of a task exists.
var priorityClassValidation = admission.Validation{
	Expression: "variables.cls == '' || variables.cls in variables.classes",
	MessageExpression: "'unknown priority class ' + variables.cls + ': ' + (variables.classes.size() == 0 ? 'the cluster policy has none; remove the label " + classLabel +
		"' : 'set the label " + classLabel + " to one of ' + variables.classes.join(', '))",
}

// owner says that nobody passes a job off as part of another, which Kueue would
// then leave alone.
func ownerValidation(what string) admission.Validation {
	var managed []string
	for _, k := range kinds {
		if k.kind != "CronJob" {
			managed = append(managed, fmt.Sprintf("'%s/%s'", k.group, k.kind))
		}
	}
	return admission.Validation{
		Expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && (o.apiVersion.split('/')[0] + '/' + o.kind) in [" + strings.Join(managed, ", ") + "])",
		Message:    "only a controller can create a " + what + " that is part of another job: remove metadata.ownerReferences",
	}
}

// policy is the admission policy of a kind of job. Kueue itself and the
// controllers that make parts of admitted jobs pass.
func (k kind) policy() *admission.ValidatingAdmissionPolicy {
	p := newPolicy(k.name, k.group, k.versions, k.resource, admission.Create, admission.Update)
	spec := &p.Spec
	spec.MatchConditions = append(spec.MatchConditions,
		admission.MatchCondition{Name: "not-by-controller", Expression: user + " != " + kueue + " && !(" + user + " in " + controllers + ")"},
		// So that finalizers, annotations and status of old jobs change as ever.
		admission.MatchCondition{Name: "new-or-changed", Expression: "oldObject == null || object.metadata.?labels != oldObject.metadata.?labels || object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences || " + k.changed()},
	)
	labels := "object.metadata.?labels.orValue({})"
	if k.labelsAt != "" {
		labels = k.labelsAt + ".?labels.orValue({})"
	}
	spec.Variables = append([]admission.Variable{{Name: "labels", Expression: labels}}, variables...)
	spec.Validations = []admission.Validation{
		{
			Expression: fmt.Sprintf("'%s' in variables.integrations", k.framework),
			MessageExpression: fmt.Sprintf("'%s: Kueue\\'s integration %s is off, so no quota would limit it. Use an enabled integration (' + variables.integrations.join(', ') + '), or ask a cluster admin to add it to integrations.frameworks of Kueue\\'s configuration'",
				k.kind, k.framework),
		},
		{
			Expression: "variables.queue != ''",
			MessageExpression: fmt.Sprintf("'%s: a queue is missing. Set the label %s%s, such as ' + request.namespace + '-localqueue: kubectl get localqueues lists the queues of this namespace'",
				k.kind, queueLabel, k.labelPlace()),
		},
		priorityClassValidation,
	}
	if k.kind != "CronJob" {
		spec.Validations = append(spec.Validations, ownerValidation(k.kind))
	}
	if k.templates == "" {
		return p
	}
	spec.Variables = append(spec.Variables,
		admission.Variable{Name: "templates", Expression: k.templatesOf("object")},
		admission.Variable{Name: "before", Expression: "oldObject == null ? [] : (" + k.templatesOf("oldObject") + ")"},
	)
	const mark = "t, t.?metadata.?labels[?'" + podsetLabel + "'].orValue('')"
	spec.Validations = append(spec.Validations,
		admission.Validation{
			Expression: "oldObject == null ? variables.templates.map(" + mark + ").all(m, m == '') : variables.templates.map(" + mark + ") == variables.before.map(" + mark + ")",
			Message:    "the label " + podsetLabel + " on pods is reserved for Kueue, which sets it on pods of admitted jobs: remove it",
		},
		admission.Validation{
			Expression: "variables.templates.all(t, t.?spec.?priorityClassName.orValue('') == '')",
			Message:    k.kind + ": priorityClassName of pods would override the priority classes of the cluster policy: remove it, and set the label " + classLabel,
		},
		poolValidation("variables.templates.filter(t, t.?spec.?nodeSelector[?variables.typeLabel].hasValue()).map(t, t.spec.nodeSelector[variables.typeLabel])"),
	)
	return p
}

func (k kind) labelPlace() string {
	if k.labelsAt != "" {
		return " in spec.jobTemplate.metadata"
	}
	return ""
}

// grouped says that no pod asks for an instance type that lies in pools of
// several types: Kueue does not look at that, and would admit what has no place.
func poolValidation(types string) admission.Validation {
	return admission.Validation{
		Expression:        "!variables.grouped.exists(g, g[0] in " + types + ")",
		MessageExpression: "variables.grouped.filter(g, g[0] in " + types + ").map(g, 'nodes of type ' + g[0] + ' are in pool ' + g.filter(p, p != g[0]).join(' or ') + ': select kuota.dev/pool: ' + g[1] + ' instead of ' + variables.typeLabel).join('; ')",
	}
}

func (k kind) templatesOf(object string) string {
	return fmt.Sprintf(k.templates, object)
}

// changed says that the pods of an object changed. Without templates that can be
// looked at, any change of the spec may be one.
func (k kind) changed() string {
	if k.templates == "" || k.versions[0] == "*" {
		return "object.spec != oldObject.spec"
	}
	return "(" + k.templatesOf("object") + ") != (" + k.templatesOf("oldObject") + ")"
}

// pods is the admission policy of pods. A pod of an admitted job is made by a
// controller and bears Kueue's label; any other waits behind Kueue's gate, which
// only Kueue opens. Owner references prove nothing: whoever makes a pod writes
// them.
func pods() *admission.ValidatingAdmissionPolicy {
	p := newPolicy("pods", "", []string{"v1"}, "pods", admission.Create, admission.Update)
	spec := &p.Spec
	const gated = "%s.spec.?schedulingGates.orValue([]).exists(g, g.name == '" + gateName + "')"
	spec.MatchConditions = append(spec.MatchConditions,
		admission.MatchCondition{Name: "not-by-kueue-or-a-node", Expression: user + " != " + kueue + " && !" + user + ".startsWith('system:node:')"},
		admission.MatchCondition{Name: "new-or-let-go", Expression: "oldObject == null || " + fmt.Sprintf(gated, "oldObject") + " && !" + fmt.Sprintf(gated, "object")},
		admission.MatchCondition{Name: "not-of-an-admitted-job", Expression: "!(oldObject == null && " + user + " in " + controllers + " && object.metadata.?labels[?'" + podsetLabel + "'].orValue('') != '')"},
	)
	spec.Variables = append([]admission.Variable{{Name: "labels", Expression: "object.metadata.?labels.orValue({})"}}, variables...)
	spec.Validations = []admission.Validation{
		{
			Expression: "oldObject == null",
			Message:    "only Kueue can start this pod: it removes the scheduling gate " + gateName + " when the pod is admitted",
		},
		{
			Expression: "'pod' in variables.integrations",
			Message:    "no quota would limit a single pod, because Kueue's integration pod is off: submit a Job with the label " + queueLabel,
		},
		{
			Expression:        "variables.queue != '' || " + user + " in " + controllers, // pods of a StatefulSet bear none
			MessageExpression: "'Pod: a queue is missing. Set the label " + queueLabel + ", such as ' + request.namespace + '-localqueue: kubectl get localqueues lists the queues of this namespace'",
		},
		priorityClassValidation,
		{
			Expression: fmt.Sprintf(gated, "object"),
			Message:    "Kueue does not manage this pod, so no quota would limit it: ask a cluster admin whether Kueue's configuration excludes this namespace",
		},
		{
			Expression: "object.spec.?priorityClassName.orValue('') == ''",
			Message:    "Pod: priorityClassName would override the priority classes of the cluster policy: remove it, and set the label " + classLabel,
		},
		poolValidation("(object.spec.?nodeSelector[?variables.typeLabel].hasValue() ? [object.spec.nodeSelector[variables.typeLabel]] : [])"),
	}
	return p
}
