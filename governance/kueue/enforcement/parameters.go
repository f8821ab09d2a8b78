package enforcement

import (
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
)

// ConfigMapName is the ConfigMap with the parameters of the policies, in the
// namespace of the console. Its kind exists in every cluster: a policy whose
// parameter kind does not exist rejects all matching requests, so that deleting
// Kuota's CRDs would block the teams.
const ConfigMapName = "kuota-enforcement"

// DefaultJobControllers are the users that create the pods and jobs of admitted
// jobs unless configured otherwise: the controllers of Kubernetes for Jobs and
// StatefulSets, and the operators of the kinds that Kueue manages, by their
// default names.
var DefaultJobControllers = []string{
	"system:serviceaccount:kube-system:job-controller",
	"system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:jobset-system:jobset-controller-manager",
	"system:serviceaccount:lws-system:lws-controller-manager",
	"system:serviceaccount:kubeflow:training-operator",
	"system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
	"system:serviceaccount:mpi-operator:mpi-operator",
	"system:serviceaccount:kuberay-system:kuberay-operator",
	"system:serviceaccount:appwrapper-system:appwrapper-controller-manager",
	"system:serviceaccount:spark-operator:spark-operator-controller",
}

// DefaultClass is the WorkloadPriorityClass with which Kueue labels jobs that
// have none.
const DefaultClass = "default"

// Parameters returns the data of the ConfigMap. Until Kueue's configuration is
// known, it assumes Kueue's default, which manages Jobs only. defaultClassExists
// reports whether there is a WorkloadPriorityClass DefaultClass, which is not the
// policy's: Kueue's webhook labels jobs with it before the policies see them.
func Parameters(policy *v1alpha1.ClusterPolicy, types catalog.Catalog, controllers []string, instanceTypeLabel string, defaultClassExists bool) map[string]string {
	kueue := policy.Status.Kueue
	labels := defaultClassExists && (kueue == nil || kueue.DefaultPriorityClass != "")
	if kueue == nil || len(kueue.Integrations) == 0 {
		kueue = &v1alpha1.KueueStatus{Account: defaultAccount, Integrations: []string{"batch/job"}}
	}
	var classes []string
	for _, class := range policy.Spec.PriorityClasses {
		classes = append(classes, desired.PriorityClassName(class.Name))
	}
	if labels {
		classes = append(classes, DefaultClass)
	}
	how := policy.Spec.Enforcement
	if how == "" {
		how = v1alpha1.RequireQueue
	}
	return map[string]string{
		"enforcement":       string(how),
		"kueue":             kueue.Account,
		"integrations":      strings.Join(kueue.Integrations, ","),
		"controllers":       strings.Join(controllers, ","),
		"classes":           strings.Join(classes, ","),
		"numericPriorities": numbers(&policy.Spec),
		"timeLimits":        timeLimits(policy.Spec.PriorityClasses),
		"instanceTypeLabel": instanceTypeLabel,
		"groupedTypes":      strings.Join(groupedTypes(types), ","),
	}
}

// defaultAccount is Kueue's service account in its release manifests.
const defaultAccount = "system:serviceaccount:kueue-system:kueue-controller-manager"

// groupedTypes returns the instance types that are only in pools of several
// types, which a pod selects by the label of the pool, as type=pool=pool.
func groupedTypes(types catalog.Catalog) (grouped []string) {
	pools, alone := map[string][]string{}, map[string]bool{}
	for _, pool := range types.Pools() {
		for _, instanceType := range pool.Types {
			if pool.Grouped {
				pools[instanceType] = append(pools[instanceType], pool.Name)
			} else {
				alone[instanceType] = true
			}
		}
	}
	for _, instanceType := range slices.Sorted(maps.Keys(pools)) {
		if !alone[instanceType] {
			grouped = append(grouped, strings.Join(append([]string{instanceType}, slices.Sorted(slices.Values(pools[instanceType]))...), "="))
		}
	}
	return grouped
}

// The probe finds an API server that does not read the parameters of the
// policies. Kubernetes 1.36 stops its watch of ConfigMaps when no
// ValidatingAdmissionPolicy with a ConfigMap as parameter is left, and never
// starts it again: policies that are created later see the ConfigMap as it was
// then, or none, and then admit everything.
//
// All policies of this package share that watch. So one more of them, which only
// applies to the ConfigMap itself, must reject every patch with the probe's
// annotation. The console may patch that ConfigMap, and needs neither a team's
// namespace, nor Kueue's webhooks, nor a permission to create jobs.
const (
	// ProbePolicy is the name of that policy.
	ProbePolicy = Prefix + "probe"
	// InstallationKey is the key of the ConfigMap with the UID of that policy. It
	// changes the parameters when the policies are installed again, so that the
	// probe does not pass by parameters that happen to be the same as before.
	InstallationKey = "installation"

	probeAnnotation = "kuota.dev/probe"
	probeOutdated   = "the API server has outdated parameters"
	probeCurrent    = "the API server has the current parameters"
)

// ProbePatch is the merge patch of the ConfigMap that the API server must reject.
// It is sent as a dry run.
const ProbePatch = `{"metadata":{"annotations":{"` + probeAnnotation + `":"true"}}}`

// ProbeResult is what the API server's response to ProbePatch shows.
type ProbeResult string

// The results of a probe.
const (
	ProbeUnknown  ProbeResult = ""         // no response, or of something else
	ProbeRejected ProbeResult = "Rejected" // as it must
	ProbeOutdated ProbeResult = "Outdated" // the policies see other parameters than the ConfigMap has
	ProbeAdmitted ProbeResult = "Admitted" // the policies see no parameters, and admit everything
)

// ProbeResultOf returns the result of a probe from the error of the patch.
func ProbeResultOf(err error) ProbeResult {
	switch {
	case err == nil:
		return ProbeAdmitted
	case !strings.Contains(err.Error(), ProbePolicy):
		return ProbeUnknown
	case strings.Contains(err.Error(), probeOutdated):
		return ProbeOutdated
	case strings.Contains(err.Error(), probeCurrent):
		return ProbeRejected
	}
	return ProbeUnknown
}

// probe returns the admission policy that rejects ProbePatch.
func probe() *admission.ValidatingAdmissionPolicy {
	p := newPolicy("probe", "", []string{"v1"}, "configmaps", admission.Update)
	spec := &p.Spec
	spec.MatchConstraints.NamespaceSelector = nil
	spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{ConfigMapName}
	spec.MatchConditions = []admission.MatchCondition{{Name: "probe", Expression: "object.metadata.?annotations[?'" + probeAnnotation + "'].hasValue()"}}
	spec.Validations = []admission.Validation{{
		Expression:        "false",
		MessageExpression: "params.?data.orValue({}) == object.?data.orValue({}) ? '" + probeCurrent + "' : '" + probeOutdated + "'",
	}}
	return p
}
