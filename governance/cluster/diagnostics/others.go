package diagnostics

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// OtherSettings are settings that Kuota does not write, and by which Kueue decides
// differently than allocations and policy describe. Lists are sorted.
type OtherSettings struct {
	UsageOrdered      []string // ClusterQueues of Kuota that are ordered by the usage of LocalQueues
	QuotaAutomated    []string // ClusterQueues of Kuota whose quota MultiKueue writes
	PreemptionConfigs []string // ClusterQueues of Kuota that name a PreemptionConfig
	Boosted           int      // unfinished tasks with a priority boost
	// DefaultPriority is the value of Kueue's default priority class; nil without one.
	DefaultPriority *int32
	Namespaces      []TeamNamespace
}

// TeamNamespace is the namespace of a team.
type TeamNamespace struct {
	Name   string
	Labels labels.Set
}

// ReadOtherSettings reads them.
func ReadOtherSettings(ctx context.Context, reader client.Reader) (o OtherSettings, err error) {
	var queues kueue.ClusterQueueList
	var workloads kueue.WorkloadList
	var namespaces corev1.NamespaceList
	if err := cluster.List(ctx, reader, &queues, &workloads, &namespaces); err != nil {
		return o, err
	}
	for i := range queues.Items {
		o.addQueue(&queues.Items[i])
	}
	for i := range workloads.Items {
		if w := &workloads.Items[i]; w.Annotations[tasks.PriorityBoostAnnotation] != "" && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			o.Boosted++
		}
	}
	var class kueue.WorkloadPriorityClass
	switch err := reader.Get(ctx, client.ObjectKey{Name: enforcement.DefaultClass}, &class); {
	case err == nil:
		o.DefaultPriority = &class.Value
	case client.IgnoreNotFound(err) != nil:
		return o, cluster.Translate("read the default priority class", err)
	}
	for i := range namespaces.Items {
		if n := &namespaces.Items[i]; n.Labels[desired.LabelGoverned] != "" {
			o.Namespaces = append(o.Namespaces, TeamNamespace{n.Name, n.Labels})
		}
	}
	return o, nil
}

// addQueue adds the settings of a ClusterQueue. Kuota writes those of its own
// ClusterQueues, except for these.
func (o *OtherSettings) addQueue(q *kueue.ClusterQueue) {
	if q.Labels[desired.LabelManagedBy] != desired.ManagedBy {
		return
	}
	if s := q.Spec.AdmissionScope; s != nil && s.AdmissionMode == kueue.UsageBasedAdmissionFairSharing {
		o.UsageOrdered = append(o.UsageOrdered, q.Name)
	}
	if meta.IsStatusConditionTrue(q.Status.Conditions, kueue.MultiKueueManagerQuotaAutomation) {
		o.QuotaAutomated = append(o.QuotaAutomated, q.Name)
	}
	if q.Annotations[tasks.PreemptionConfigAnnotation] != "" {
		o.PreemptionConfigs = append(o.PreemptionConfigs, q.Name)
	}
	for _, list := range [][]string{o.UsageOrdered, o.QuotaAutomated, o.PreemptionConfigs} {
		slices.Sort(list)
	}
}

// ReplacedQuotas returns the names of Kuota's ClusterQueues with
// status.effectiveQuotas (Kueue 0.20), which replaces the quota of the spec even if
// it is empty.
func ReplacedQuotas(queues []unstructured.Unstructured) (names []string) {
	for i := range queues {
		if _, replaced, _ := unstructured.NestedMap(queues[i].Object, "status", "effectiveQuotas"); replaced && queues[i].GetLabels()[desired.LabelManagedBy] == desired.ManagedBy {
			names = append(names, queues[i].GetName())
		}
	}
	slices.Sort(names)
	return names
}

// checkOthers checks settings that Kuota does not write.
func checkOthers(s Observation) (findings []Finding) {
	o := s.Others
	if excluded := s.excludedNamespaces(); len(excluded) > 0 {
		findings = append(findings, Finding{
			ID: "excluded-namespaces", Title: "Kueue ignores the namespaces of some teams", Severity: SeverityError,
			Impact: "managedJobsNamespaceSelector of Kueue's configuration excludes them, so that Kueue admits no job there. Without enforcement jobs run without quota, with enforcement their pods are rejected: " + listNames(excluded) + ".",
			Fix: fmt.Sprintf("# Change managedJobsNamespaceSelector so that it selects these namespaces:\nkubectl --namespace %s edit configmap %s\n# Then restart Kueue:\n%s\n# The labels of one of them:\nkubectl get namespace %s --show-labels\n",
				s.Install.Namespace, s.Install.ConfigMap, s.Kueue.RestartCommand, excluded[0]),
		})
	}
	if len(o.QuotaAutomated) > 0 {
		findings = append(findings, Finding{
			ID: "quota-automation", Title: "MultiKueue writes the quota of some queues", Severity: SeverityError,
			Impact: "Kueue sets their quota to the sum of its worker clusters, and Kuota sets it back to the allocation's, again and again: " + listNames(o.QuotaAutomated) + ".",
			Fix:    fmt.Sprintf("# The MultiKueueConfig is named in the parameters of the queue's admission check:\nkubectl get clusterqueue %s -o jsonpath='{.spec.admissionChecksStrategy.admissionChecks[*].name}'\nkubectl get admissionchecks -o wide\nkubectl patch multikueueconfig <name> --type merge --patch '{\"spec\":{\"quotaManagement\":\"Manual\"}}'\n", o.QuotaAutomated[0]),
		})
	}
	if len(s.EffectiveQuotas) > 0 {
		findings = append(findings, Finding{
			ID: "effective-quotas", Title: "Kueue uses other quota than that of the allocations", Severity: SeverityError,
			Impact: "status.effectiveQuotas of these ClusterQueues replaces the quota of their teams, so that figures and explanations of Kuota are wrong: " + listNames(s.EffectiveQuotas) + ".",
			Fix:    fmt.Sprintf("# It is written by:\nkubectl get clusterqueue %s -o jsonpath='{.status.effectiveQuotas.orchestratorRef}'\n# Remove these queues from it, or switch it off for all queues:\n", s.EffectiveQuotas[0]) + additionFix(s.Kueue.Current, kueueconfig.Addition{Gates: map[string]bool{kueueconfig.GateDynamicQuota: false}}),
		})
	}
	if len(o.PreemptionConfigs) > 0 {
		findings = append(findings, Finding{
			ID: "preemption-config", Title: "Some queues preempt by rules of a PreemptionConfig", Severity: SeverityWarning,
			Impact: "With the gate " + kueueconfig.GatePreemption + ", Kueue also preempts tasks by these rules, which Kuota does not evaluate. Its explanations name no tasks that they preempt: " + listNames(o.PreemptionConfigs) + ".",
			Fix:    fmt.Sprintf("# To preempt only as the policy says:\nkubectl annotate clusterqueue %s %s-\n", strings.Join(o.PreemptionConfigs, " "), tasks.PreemptionConfigAnnotation),
		})
	}
	if len(o.UsageOrdered) > 0 {
		findings = append(findings, Finding{
			ID: "admission-scope", Title: "Some queues are ordered by usage before priority", Severity: SeverityWarning,
			Impact: "admissionScope of these ClusterQueues orders tasks by the past usage of their LocalQueue, so that positions and explanations of Kuota are wrong: " + listNames(o.UsageOrdered) + ".",
			Fix:    fmt.Sprintf("for queue in %s; do\n  kubectl patch clusterqueue $queue --type merge --patch '{\"spec\":{\"admissionScope\":null}}'\ndone\n# Kueue uses another order after its next start:\n%s\n", strings.Join(o.UsageOrdered, " "), s.Kueue.RestartCommand),
		})
	}
	return append(findings, s.checkPriorities()...)
}

// checkPriorities checks for priorities that are not those of the policy.
func (s Observation) checkPriorities() (findings []Finding) {
	if s.KueueRead != ReadSucceeded {
		return nil
	}
	if n := s.Others.Boosted; n > 0 && kueueconfig.GateEnabled(s.Kueue.Current, kueueconfig.GateBoost) {
		count := fmt.Sprintf("%d tasks have", n)
		if n == 1 {
			count = "1 task has"
		}
		findings = append(findings, Finding{
			ID: "priority-boost", Title: "Some tasks have another priority than their priority class", Severity: SeverityWarning,
			Impact: count + " the annotation " + tasks.PriorityBoostAnnotation + ", which Kueue adds to the priority. Positions and explanations of Kuota do not.",
			Fix:    "# Stop the program that writes the annotation, or switch it off:\n" + additionFix(s.Kueue.Current, kueueconfig.Addition{Gates: map[string]bool{kueueconfig.GateBoost: false}}),
		})
	}
	if value := s.Others.DefaultPriority; value != nil && *value != 0 && kueueconfig.DefaultPriorityClass(s.Kueue.Current) != "" {
		findings = append(findings, Finding{
			ID: "default-class", Title: "Kueue gives tasks without a priority class another priority than the policy", Severity: SeverityWarning,
			Impact: fmt.Sprintf("Their priority is %d, that of WorkloadPriorityClass %s, and not 0. The policy neither shows nor changes it.", *value, enforcement.DefaultClass),
			Fix:    "# Delete it:\nkubectl delete workloadpriorityclass " + enforcement.DefaultClass + "\n# or switch it off:\n" + additionFix(s.Kueue.Current, kueueconfig.Addition{Gates: map[string]bool{kueueconfig.GateDefaultClass: false}}),
		})
	}
	return findings
}

// excludedNamespaces returns the namespaces of teams whose jobs Kueue ignores.
func (s Observation) excludedNamespaces() (names []string) {
	if s.KueueRead != ReadSucceeded {
		return nil
	}
	selector, err := kueueconfig.ManagedNamespaces(s.Kueue.Text)
	if err != nil {
		return nil // Kueue does not start with it
	}
	for _, n := range s.Others.Namespaces {
		if !selector.Matches(n.Labels) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// maxNames is how many names a finding lists.
const maxNames = 5

func listNames(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}
