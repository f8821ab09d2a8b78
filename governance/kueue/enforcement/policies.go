package enforcement

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

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
	// parentAnnotation is on pods that Kueue manages for their owner.
	parentAnnotation = "kueue.x-k8s.io/pod-suspending-parent"
	// setLabel has the name of the LeaderWorkerSet of a pod with that annotation.
	setLabel = "leaderworkerset.sigs.k8s.io/name"
)

// Policies returns all admission policies and their bindings, by name.
func Policies() ([]*admission.ValidatingAdmissionPolicy, []*admission.ValidatingAdmissionPolicyBinding) {
	var policies []*admission.ValidatingAdmissionPolicy
	for _, k := range append(slices.Clone(kinds), elasticJobs) {
		policies = append(policies, k.policy())
	}
	policies = append(policies, trainingRuntimes(), pods(), orphans(), queues(), probe())
	var bindings []*admission.ValidatingAdmissionPolicyBinding
	for _, p := range policies {
		bindings = append(bindings, binding(p.Name))
		if p.Name == Prefix+queuesName {
			bindings[len(bindings)-1].Spec.ValidationActions = []admission.ValidationAction{admission.Warn}
		}
	}
	return policies, bindings
}

// PolicyNames returns the names of the policies, which their bindings share.
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

// binding binds a policy to its parameters. Without the ConfigMap it allows
// everything.
func binding(name string) *admission.ValidatingAdmissionPolicyBinding {
	return &admission.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admission.ValidationAction{admission.Deny},
			ParamRef:          paramRef(),
		},
	}
}

func paramKind() *admission.ParamKind {
	return &admission.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
}

func paramRef() *admission.ParamRef {
	allow := admission.AllowAction
	return &admission.ParamRef{Name: ConfigMapName, Namespace: "kuota-system", ParameterNotFoundAction: &allow}
}

func rule(group string, versions []string, resource string, operations ...admission.OperationType) admission.NamedRuleWithOperations {
	return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
		Operations: operations,
		Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: versions, Resources: []string{resource}},
	}}
}

func newPolicy(name, group string, versions []string, resource string, operations ...admission.OperationType) *admission.ValidatingAdmissionPolicy {
	fail := admission.Fail
	return &admission.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: Prefix + name},
		Spec: admission.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			ParamKind:     paramKind(),
			// Here rather than in the binding, so that an error of a policy only affects
			// team namespaces.
			MatchConstraints: &admission.MatchResources{NamespaceSelector: teamNamespaces, ResourceRules: []admission.NamedRuleWithOperations{rule(group, versions, resource, operations...)}},
			MatchConditions:  []admission.MatchCondition{enforced},
		},
	}
}

// Parts of expressions.
const (
	user        = "request.userInfo.username"
	kueue       = "params.?data[?'kueue'].orValue('')"
	controllers = "params.?data[?'controllers'].orValue('').split(',')"
)

// Conditions of policies.
var (
	enforced         = admission.MatchCondition{Name: "enforced", Expression: "params.?data[?'enforcement'].orValue('') == 'RequireQueue'"}
	notByController  = admission.MatchCondition{Name: "not-by-controller", Expression: user + " != " + kueue + " && !(" + user + " in " + controllers + ")"}
	notPartOfAnother = admission.MatchCondition{Name: "not-part-of-another", Expression: "!('" + v1alpha1.LabelElasticJob + "' in object.metadata.?labels.orValue({})) && !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind != 'CronJob')"}
)

// variables are common to all policies. Lists are separated by commas, and a
// grouped type has the form type=pool=pool.
var variables = []admission.Variable{
	{Name: "queue", Expression: "variables.labels[?'" + queueLabel + "'].orValue('')"},
	{Name: "cls", Expression: "variables.labels[?'" + classLabel + "'].orValue('')"},
	{Name: "classes", Expression: "params.?data[?'classes'].orValue('').split(',').filter(c, c != '')"},
	{Name: "integrations", Expression: "params.?data[?'integrations'].orValue('').split(',')"},
	{Name: "typeLabel", Expression: "params.?data[?'instanceTypeLabel'].orValue('node.kubernetes.io/instance-type')"},
	{Name: "grouped", Expression: "params.?data[?'groupedTypes'].orValue('').split(',').filter(g, g != '').map(g, g.split('='))"},
}

// priorityClassValidation requires that the priority class of a task exists.
var priorityClassValidation = admission.Validation{
	Expression: "variables.cls == '' || variables.cls in variables.classes || " + numbersAllowed + " && variables.cls.matches('^" + desired.NumberPrefix + "([0-9]|[1-9][0-9])$')",
	MessageExpression: "'unknown priority class ' + variables.cls + ': ' + (variables.classes.size() == 0 && !(" + numbersAllowed + ") ? 'the cluster policy has none; remove the label " + classLabel +
		"' : 'set the label " + classLabel + " to one of ' + (variables.classes + (" + numbersAllowed + " ? ['" + desired.NumberPrefix + "0 to " + desired.NumberPrefix + "99'] : [])).join(', '))",
}

// ownerValidation requires that only controllers create jobs with an owner:
// Kueue does not manage a job that is part of another.
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

// policy returns the admission policy of a kind. It does not apply to Kueue and
// to the controllers that create parts of admitted jobs.
func (k kind) policy() *admission.ValidatingAdmissionPolicy {
	p := newPolicy(k.name, k.group, k.versions, k.resource, admission.Create, admission.Update)
	spec := &p.Spec
	spec.MatchConditions = append(spec.MatchConditions,
		notByController,
		// So that finalizers, annotations and status of existing jobs can change.
		admission.MatchCondition{Name: "new-or-changed", Expression: "oldObject == null || object.metadata.?labels != oldObject.metadata.?labels || object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences || object.metadata.?annotations[?'" + desired.PriorityLabel + "'] != oldObject.metadata.?annotations[?'" + desired.PriorityLabel + "'] || " + k.changed()},
	)
	labels := "object.metadata.?labels.orValue({})"
	if k.labelsAt != "" {
		labels = k.labelsAt + ".?labels.orValue({})"
	}
	set := fmt.Sprintf("'Set the label %s%s, such as ' + request.namespace + '-localqueue: kubectl get localqueues lists the queues of this namespace'", queueLabel, k.labelPlace())
	if k.templates != "" {
		set = fmt.Sprintf("(%s ? 'Move the label %s from %s: Kueue does not read it there' : %s)", k.each("variables.templates", "exists", "'"+queueLabel+"' in t.?metadata.?labels.orValue({})"), queueLabel, k.labelMove(), set)
	}
	spec.Variables = slices.Concat([]admission.Variable{{Name: "labels", Expression: labels}}, variables, k.shareVariables(), k.timeLimitVariables())
	spec.Validations = []admission.Validation{
		{
			Expression: fmt.Sprintf("'%s' in variables.integrations", k.framework),
			MessageExpression: fmt.Sprintf("'%s: Kueue\\'s integration %s is off, so no quota would limit it. Use an enabled integration (' + variables.integrations.join(', ') + '), or ask a cluster admin to add it to integrations.frameworks of Kueue\\'s configuration'",
				k.kind, k.framework),
		},
		{
			Expression:        "variables.queue != ''",
			MessageExpression: "'" + k.kind + ": a queue is missing. ' + " + set,
		},
		k.shareValidation(),
		k.numberValidation(),
		priorityClassValidation,
		k.timeLimitValidation(),
	}
	if k.kind != "CronJob" {
		spec.Validations = append(spec.Validations, ownerValidation(k.kind))
	}
	if k.templates != "" {
		k.checkTemplates(spec)
	}
	spec.Variables = append(spec.Variables, k.numberVariables()...)
	return p
}

// checkTemplates adds the variables and the validations of the pod templates.
func (k kind) checkTemplates(spec *admission.ValidatingAdmissionPolicySpec) {
	spec.Variables = append(spec.Variables,
		admission.Variable{Name: "templates", Expression: k.templatesOf("object")},
		admission.Variable{Name: "before", Expression: "oldObject == null ? [] : (" + k.templatesOf("oldObject") + ")"},
	)
	mark := func(list string) string {
		return k.each(list, "map", "t.?metadata.?labels[?'"+podsetLabel+"'].orValue('')")
	}
	spec.Validations = append(spec.Validations,
		admission.Validation{
			Expression: "oldObject == null ? " + k.each("variables.templates", "all", "t.?metadata.?labels[?'"+podsetLabel+"'].orValue('') == ''") + " : " + mark("variables.templates") + " == " + mark("variables.before"),
			Message:    "the label " + podsetLabel + " on pods is reserved for Kueue, which sets it on pods of admitted jobs: remove it",
		},
		admission.Validation{
			Expression: k.each("variables.templates", "all", "t.?spec.?priorityClassName.orValue('') "+k.podClasses()),
			Message:    k.kind + ": priorityClassName of pods would override the priority classes of the cluster policy: remove it, and set the label " + classLabel,
		},
		poolValidation(k.each("variables.templates", "exists", "t"+selectsType)),
	)
}

// podClasses is CEL, after the priority class of pods: whether it is allowed. Jobs of
// ElasticJobs ask for nodes with one, which is below all others.
func (k kind) podClasses() string {
	if k.name == "jobs" {
		return "in ['', '" + v1alpha1.ProvisionClass + "']"
	}
	return "== ''"
}

// trainingRuntimes returns the admission policy of the runtimes of a namespace, which
// have the pod templates of TrainJobs. Those of the cluster are the admins'.
func trainingRuntimes() *admission.ValidatingAdmissionPolicy {
	k := kind{
		name: "trainingruntimes", group: "trainer.kubeflow.org", versions: []string{"*"}, resource: "trainingruntimes", kind: "TrainingRuntime",
		templates: "%s.spec.?template.?spec.?replicatedJobs.orValue([]).map(j, j.template.spec.template)",
	}
	p := newPolicy(k.name, k.group, k.versions, k.resource, admission.Create, admission.Update)
	p.Spec.MatchConditions = append(p.Spec.MatchConditions, notByController, admission.MatchCondition{Name: "new-or-changed", Expression: "oldObject == null || " + k.changed()})
	p.Spec.Variables = slices.Concat([]admission.Variable{{Name: "labels", Expression: "object.metadata.?labels.orValue({})"}}, variables)
	k.checkTemplates(&p.Spec)
	return p
}

func (k kind) labelPlace() string {
	if k.labelsAt != "" {
		return " in spec.jobTemplate.metadata"
	}
	return ""
}

// labelMove returns where a label of a pod template is, and where Kueue reads it.
func (k kind) labelMove() string {
	from, to := "the labels of its pods", "metadata.labels"
	if path, ok := strings.CutSuffix(strings.TrimPrefix(k.templates, "[%s."), ".template]"); ok {
		from = path + ".template.metadata.labels"
	}
	if k.labelsAt != "" {
		to = "spec.jobTemplate.metadata.labels"
	}
	return from + " to " + to
}

// selectsType is CEL, after a pod or its template: whether it selects the type of g.
const selectsType = ".?spec.?nodeSelector[?variables.typeLabel].orValue('') == g[0]"

// poolValidation rejects pods that select an instance type that is only in
// pools of several types: CEL over g, one of these types with its pools. Kueue
// ignores that selector, and would admit pods that no node of the pool may match.
func poolValidation(selected string) admission.Validation {
	return admission.Validation{
		Expression:        "!variables.grouped.exists(g, " + selected + ")",
		MessageExpression: "variables.grouped.filter(g, " + selected + ").map(g, 'nodes of type ' + g[0] + ' are in pool ' + g.filter(p, p != g[0]).join(' or ') + ': select kuota.dev/pool: ' + g[1] + ' instead of ' + variables.typeLabel).join('; ')",
	}
}

// each returns a macro of CEL, such as all, over the pod templates t in a list.
func (k kind) each(list, macro, expression string) string {
	if k.nested {
		return fmt.Sprintf("%s.%s(ts, ts.%[2]s(t, %[3]s))", list, macro, expression)
	}
	return fmt.Sprintf("%s.%s(t, %s)", list, macro, expression)
}

func (k kind) templatesOf(object string) string {
	return fmt.Sprintf(k.templates, object)
}

// changed returns an expression for changed pods, or a changed time limit. For a kind without readable
// templates it is any change of the spec.
func (k kind) changed() string {
	if k.templates == "" || k.versions[0] == "*" {
		return "object.spec != oldObject.spec"
	}
	changed := "(" + k.templatesOf("object") + ") != (" + k.templatesOf("oldObject") + ")"
	if k.timeLimit != "" {
		changed += " || " + fmt.Sprintf(k.timeLimit, "object") + " != " + fmt.Sprintf(k.timeLimit, "oldObject")
	}
	return changed
}

// pods returns the admission policy of pods. A pod of an admitted job is
// created by a controller and has Kueue's label. Any other pod must have
// Kueue's scheduling gate, which only Kueue removes. Owner references prove
// nothing, because the user who creates a pod sets them.
func pods() *admission.ValidatingAdmissionPolicy {
	p := newPolicy("pods", "", []string{"v1"}, "pods", admission.Create, admission.Update)
	spec := &p.Spec
	const (
		gated     = "%s.spec.?schedulingGates.orValue([]).exists(g, g.name == '" + gateName + "')"
		parent    = "object.metadata.?annotations[?'" + parentAnnotation + "'].orValue('')"
		sameQueue = "object.metadata.?labels[?'" + queueLabel + "'] == oldObject.metadata.?labels[?'" + queueLabel + "']"
		sameSet   = "object.metadata.?annotations[?'" + parentAnnotation + "'] == oldObject.metadata.?annotations[?'" + parentAnnotation + "'] && object.metadata.?labels[?'" + setLabel + "'] == oldObject.metadata.?labels[?'" + setLabel + "']"
	)
	spec.MatchConditions = append(spec.MatchConditions,
		admission.MatchCondition{Name: "not-by-kueue-or-a-node", Expression: user + " != " + kueue + " && !" + user + ".startsWith('system:node:')"},
		admission.MatchCondition{Name: "new-let-go-or-moved", Expression: "oldObject == null || " + fmt.Sprintf(gated, "oldObject") + " && (!" + fmt.Sprintf(gated, "object") + " || !(" + sameSet + ") || !(" + sameQueue + "))"},
		admission.MatchCondition{Name: "not-of-an-admitted-job", Expression: "!(oldObject == null && " + user + " in " + controllers + " && object.metadata.?labels[?'" + podsetLabel + "'].orValue('') != '')"},
	)
	spec.Variables = slices.Concat([]admission.Variable{{Name: "labels", Expression: "object.metadata.?labels.orValue({})"}}, variables, kind{}.shareVariables(), kind{}.timeLimitVariables(), kind{}.numberVariables())
	spec.Validations = []admission.Validation{
		{
			Expression: "oldObject == null || " + fmt.Sprintf(gated, "object"),
			Message:    "only Kueue can start this pod: it removes the scheduling gate " + gateName + " when the pod is admitted",
		},
		{
			// Kueue 0.19 starts a pod that names a StatefulSet with quota as its owner, whatever
			// the pod requests, and one whose LeaderWorkerSet does not exist.
			Expression: user + " in " + controllers + " || (oldObject == null ? !(" + parent + " in ['statefulset', 'leaderworkerset.x-k8s.io/leaderworkerset']) : " + sameSet + ")",
			Message:    "only a controller can create a pod of a StatefulSet or LeaderWorkerSet: remove the annotation " + parentAnnotation + " and the label " + setLabel,
		},
		{
			// Kueue 0.19 manages pods of these kinds without the integration pod, and no others.
			Expression: "'pod' in variables.integrations || " + parent + " != '' && ['deployment', 'statefulset', 'leaderworkerset.x-k8s.io/leaderworkerset'].exists(f, f in variables.integrations)",
			Message:    "no quota would limit a single pod, because Kueue's integration pod is off: submit a Job with the label " + queueLabel,
		},
		{
			Expression:        "variables.queue != '' || " + user + " in " + controllers, // pods of a StatefulSet have none
			MessageExpression: "'Pod: a queue is missing. Set the label " + queueLabel + ", such as ' + request.namespace + '-localqueue: kubectl get localqueues lists the queues of this namespace'",
		},
		kind{kind: "Pod"}.shareValidation(),
		kind{kind: "Pod"}.numberValidation(),
		priorityClassValidation,
		kind{kind: "Pod"}.timeLimitValidation(),
		{
			Expression: fmt.Sprintf(gated, "object"),
			Message:    "Kueue does not manage this pod, so no quota would limit it: ask a cluster admin whether Kueue's configuration excludes this namespace",
		},
		{
			Expression: "object.spec.?priorityClassName.orValue('') == ''",
			Message:    "Pod: priorityClassName would override the priority classes of the cluster policy: remove it, and set the label " + classLabel,
		},
		poolValidation("object" + selectsType),
	}
	return p
}

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
