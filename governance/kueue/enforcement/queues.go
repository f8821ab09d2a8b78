package enforcement

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// queuesName is the name of the policy that warns of a LocalQueue that does not exist.
const queuesName = "queues"

// queuesKey begins the key of the ConfigMap with the LocalQueues of a namespace.
const queuesKey = "queues."

// maxQueues bounds the LocalQueues in the ConfigMap, in bytes: it fits 1 MiB.
const maxQueues = 512 << 10

// QueueParameters returns the names of the LocalQueues for the ConfigMap, by namespace. Of
// namespaces that do not fit there are none, and the API server does not warn in them.
func QueueParameters(queues []kueueapi.LocalQueue) map[string]string {
	queues = slices.Clone(queues)
	slices.SortFunc(queues, func(a, b kueueapi.LocalQueue) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	data, size := map[string]string{}, 0
	for len(queues) > 0 {
		namespace := queues[0].Namespace
		var names []string
		for len(queues) > 0 && queues[0].Namespace == namespace {
			names, queues = append(names, queues[0].Name), queues[1:]
		}
		value := strings.Join(names, ",")
		if size += len(queuesKey) + len(namespace) + len(value); size > maxQueues {
			break
		}
		data[queuesKey+namespace] = value
	}
	return data
}

// queues returns the admission policy that warns of a LocalQueue that does not exist. It
// rejects nothing: GitOps may create a job before its queue.
func queues() *admission.ValidatingAdmissionPolicy {
	p := newPolicy(queuesName, "", nil, "")
	spec := &p.Spec
	ignore := admission.Ignore
	spec.FailurePolicy = &ignore
	spec.MatchConstraints.ResourceRules = []admission.NamedRuleWithOperations{rule("", []string{"*"}, "pods", admission.Create)}
	for _, k := range append(slices.Clone(kinds), elasticJobs) {
		spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules, rule(k.group, []string{"*"}, k.resource, admission.Create, admission.Update))
	}
	spec.MatchConditions = append(spec.MatchConditions, notByController)
	queueOf := func(object string) string {
		return "(request.kind.kind == 'CronJob' ? " + object + ".spec.jobTemplate.?metadata : " + object + ".?metadata).?labels[?'" + queueLabel + "'].orValue('')"
	}
	spec.Variables = []admission.Variable{
		{Name: "queue", Expression: queueOf("object")},
		{Name: "queueBefore", Expression: "oldObject == null ? '' : " + queueOf("oldObject")},
		{Name: "queues", Expression: "params.?data[?('" + queuesKey + "' + request.namespace)].orValue('').split(',')"},
	}
	spec.Validations = []admission.Validation{{
		Expression:        "variables.queue in ['', variables.queueBefore] || variables.queues == [''] || variables.queue in variables.queues",
		MessageExpression: "request.kind.kind + ': this namespace has no LocalQueue ' + variables.queue + ', and Kueue starts nothing of it until there is one. The label " + queueLabel + " can name ' + variables.queues.join(' or ')",
	}}
	return p
}

// shareVariables are the members of the share that the queue belongs to, each as kind and
// name, which are none of an open share or another queue, and the queue before the change.
// The controller writes the members on the namespace, which no member may change.
func (k kind) shareVariables() []admission.Variable {
	before := "oldObject.metadata"
	if k.labelsAt != "" {
		before = strings.Replace(k.labelsAt, "object.", "oldObject.", 1)
	}
	return []admission.Variable{
		{Name: "shareMembers", Expression: "namespaceObject.metadata.?annotations[?'" + desired.AnnotationShareMembers + "'].orValue('').split('\\n').filter(l, l.startsWith(variables.queue + ' ')).map(l, l.substring(size(variables.queue) + 1))"},
		{Name: "queueBefore", Expression: "oldObject == null ? '' : " + before + ".?labels[?'" + queueLabel + "'].orValue('')"},
	}
}

// systemControllers are the controllers of Kubernetes, which create Jobs of CronJobs and
// pods of Deployments: their owner was validated.
const systemControllers = "system:serviceaccount:kube-system:"

// shareValidation requires that only the members of a share submit to its queue.
func (k kind) shareValidation() admission.Validation {
	allowed := "variables.queue == variables.queueBefore || variables.shareMembers.size() == 0 || 'User ' + " + user + " in variables.shareMembers" +
		" || request.userInfo.?groups.orValue([]).exists(g, 'Group ' + g in variables.shareMembers)"
	switch k.kind {
	case "Job": // only Kuota sets that label, on parts of an ElasticJob, which was validated: see members.yaml
		allowed = "'" + v1alpha1.LabelElasticJob + "' in variables.labels || " + user + ".startsWith('" + systemControllers + "') || " + allowed
	case "Pod":
		allowed = user + " in " + controllers + " || " + user + ".startsWith('" + systemControllers + "') || " + allowed
	}
	return admission.Validation{
		Expression:        allowed,
		MessageExpression: "'" + k.kind + ": only the members of its share can use queue ' + variables.queue + ': use another queue of this namespace, or ask a cluster admin to add you to the share'",
	}
}
