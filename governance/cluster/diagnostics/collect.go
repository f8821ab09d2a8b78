package diagnostics

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// collectTimeout bounds the collection for a page.
const collectTimeout = 5 * time.Second

// collector fills in a report. Its methods run concurrently and set different
// fields.
type collector struct {
	service *Service
	ctx     context.Context
	report  *Report
}

func (l collector) server() {
	if version, err := l.service.Cluster.Discovery().ServerVersion(); err == nil {
		l.report.Server = version.GitVersion
	}
}

func (l collector) kueue() {
	seen, err := l.service.Kueue(l.ctx)
	switch {
	case err == nil:
		l.report.Kueue = seen
		l.effectiveQuotas(seen)
	case apierrors.IsNotFound(err):
		l.report.KueueRead, l.report.KueueReadError = ReadNotFound, "The API server reports: "+err.Error()+"."
	case apierrors.IsForbidden(err):
		l.report.KueueRead = ReadForbidden
	default:
		l.report.KueueRead = ReadFailed
	}
}

// effectiveQuotas reads the ClusterQueues whose quota is replaced. Only Kueue with
// the gate does so, and the field is not in the types of the cache.
func (l collector) effectiveQuotas(seen reconcile.KueueState) {
	if !kueueconfig.GateEnabled(seen.Current, kueueconfig.GateDynamicQuota) {
		return
	}
	queues := unstructured.UnstructuredList{}
	queues.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("ClusterQueueList"))
	if err := l.service.Cluster.APIReader().List(l.ctx, &queues); err != nil {
		l.report.EffectiveUnread = true
		return
	}
	l.report.EffectiveQuotas = ReplacedQuotas(queues.Items)
}

// visibilityAPI is the API of Kueue that returns the order of queues, which the
// API server proxies.
const visibilityAPI = "visibility.kueue.x-k8s.io/v1beta2"

func (l collector) visibility() {
	_, err := l.service.Cluster.Discovery().ServerResourcesForGroupVersion(visibilityAPI)
	l.report.Visibility = err == nil
}

// permission checks the permissions of the console itself.
func (l collector) permission() {
	install, allowed := l.service.Install, true
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: "configmaps", Namespace: install.Namespace, Name: install.ConfigMap},
		{Verb: "update", Group: "apps", Resource: "deployments", Namespace: install.Namespace, Name: install.Deployment},
	} {
		one, err := l.service.Cluster.ConsoleAllowed(l.ctx, what)
		if err != nil {
			return
		}
		allowed = allowed && one
	}
	l.report.CanWrite = answerOf(allowed)
}

// impersonation checks the permissions of the console to act as users.
func (l collector) impersonation() {
	for _, p := range []struct {
		answer *Answer
		what   authorizationv1.ResourceAttributes
	}{
		{&l.report.CanImpersonateEveryone, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"}},
		{&l.report.CanImpersonate, authorizationv1.ResourceAttributes{Verb: "impersonate-on:user-info:update", Group: v1alpha1.GroupVersion.Group, Resource: "computeallocations"}},
	} {
		allowed, err := l.service.Cluster.ConsoleAllowed(l.ctx, p.what)
		if err != nil {
			return
		}
		*p.answer = answerOf(allowed)
	}
}

// Names of admission policies in deploy/rbac, except those of enforcement.
var membersPolicies = []string{"kuota-elastic-parts", "kuota-elasticjobs", "kuota-jobs", "kuota-namespaces", "kuota-scripts", "kuota-services", "kuota-submitters", "kuota-workloads"}

// departmentsPolicies are those that limit the admins of departments.
var departmentsPolicies = []string{reconcile.DepartmentsPolicy, "kuota-department-namespaces", "kuota-departments-of-departments", "kuota-departments-of-teams"}

var recordsUsers = []string{"kuota-changed-by", "kuota-submitted-by", "kuota-submitted-by-cronjobs"}

func (l collector) admission() {
	missing := func(names []string) ([]string, error) {
		return reconcile.MissingPolicies(l.ctx, l.service.Cluster.APIReader(), names, &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{})
	}
	var unread, membersUnread, departmentsUnread error
	l.report.Enforcement, unread = missing(enforcement.PolicyNames())
	l.report.Members, membersUnread = missing(membersPolicies)
	l.report.Departments, departmentsUnread = missing(departmentsPolicies)
	l.report.PoliciesKnown = unread == nil && membersUnread == nil && departmentsUnread == nil
	l.report.ChangedBy = l.mutating(recordsUsers...)
	l.report.TimeLimits = l.mutating(enforcement.MutatingPolicyNames()...)
	if unread == nil && len(l.report.Enforcement) == 0 {
		l.report.Probe = l.probe()
	}
}

// probeAttempts is how often the API server is probed, once a second, until it
// rejects the probe: it reads new policies within two seconds.
const probeAttempts = 3

// probe checks whether the API server applies the admission policies.
func (l collector) probe() (result enforcement.ProbeResult) {
	for attempt := 1; ; attempt++ {
		result, err := reconcile.ProbeEnforcement(l.ctx, l.service.Cluster.Manager.GetClient(), l.service.namespace())
		if err != nil || result == enforcement.ProbeRejected || result == enforcement.ProbeUnknown || attempt == probeAttempts {
			return result
		}
		if governance.Sleep(l.ctx, time.Second) != nil {
			return result
		}
	}
}

// mutating returns the state of the mutating admission policies with these names.
func (l collector) mutating(names ...string) PolicyState {
	served, err := l.service.Cluster.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		return PolicyUnknown
	}
	if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" }) {
		return PolicyUnsupported
	}
	switch missing, err := reconcile.MissingPolicies(l.ctx, l.service.Cluster.APIReader(), names, &admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}); {
	case len(missing) > 0:
		return PolicyMissing
	case err != nil:
		return PolicyUnknown
	}
	return PolicyInstalled
}
