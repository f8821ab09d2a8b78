package enforcement

import (
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
)

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
