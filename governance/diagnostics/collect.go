package diagnostics

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/enforcement"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lookLimit is how long all looks together may take.
const collectTimeout = 5 * time.Second

// looker fills in a state. Each of its methods has fields of its own.
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
	case apierrors.IsNotFound(err):
		l.report.KueueRead, l.report.KueueReadError = ReadNotFound, "The API server reports: "+err.Error()+"."
	case apierrors.IsForbidden(err):
		l.report.KueueRead = ReadForbidden
	default:
		l.report.KueueRead = ReadFailed
	}
}

// visibilityAPI is where Kueue tells the order of its queues; the API server
// passes what it is asked there on to Kueue.
const visibilityAPI = "visibility.kueue.x-k8s.io/v1beta2"

func (l collector) visibility() {
	_, err := l.service.Cluster.Discovery().ServerResourcesForGroupVersion(visibilityAPI)
	l.report.Visibility = err == nil
}

// permission asks about the console itself.
func (l collector) permission() {
	install, answer := l.service.Install, Yes
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: "configmaps", Namespace: install.Namespace, Name: install.ConfigMap},
		{Verb: "update", Group: "apps", Resource: "deployments", Namespace: install.Namespace, Name: install.Deployment},
	} {
		review, err := l.service.Cluster.Clientset().AuthorizationV1().SelfSubjectAccessReviews().Create(l.ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
		}, metav1.CreateOptions{})
		if err != nil {
			return
		}
		if !review.Status.Allowed {
			answer = No
		}
	}
	l.report.CanWrite = answer
}

// Names of admission policies in deploy/rbac, beside those of enforcement.
var membersPolicies = []string{"kuota-jobs", "kuota-namespaces", "kuota-workloads"}

const changedBy = "kuota-changed-by"

func (l collector) admission() {
	var all, members bool
	l.report.Enforcement, all = l.missing(enforcement.PolicyNames())
	l.report.Members, members = l.missing(membersPolicies)
	l.report.PoliciesKnown = all && members
	l.report.ChangedBy = l.changedBy()
}

// missing are the admission policies that are not there, or not bound. What may
// not be looked at is not known to be missing; looked tells whether all could be.
func (l collector) missing(names []string) (missing []string, looked bool) {
	looked = true
	api := l.service.Cluster.Clientset().AdmissionregistrationV1()
	for _, name := range names {
		_, err := api.ValidatingAdmissionPolicies().Get(l.ctx, name, metav1.GetOptions{})
		if err == nil {
			_, err = api.ValidatingAdmissionPolicyBindings().Get(l.ctx, name, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			missing = append(missing, name)
		} else if err != nil {
			looked = false
		}
	}
	return missing, looked
}

func (l collector) changedBy() PolicyState {
	clients := l.service.Cluster.Clientset()
	served, err := l.service.Cluster.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		return PolicyUnknown
	}
	known := false
	for _, r := range served.APIResources {
		known = known || r.Kind == "MutatingAdmissionPolicy"
	}
	if !known {
		return PolicyUnsupported
	}
	api := clients.AdmissionregistrationV1()
	_, err = api.MutatingAdmissionPolicies().Get(l.ctx, changedBy, metav1.GetOptions{})
	if err == nil {
		_, err = api.MutatingAdmissionPolicyBindings().Get(l.ctx, changedBy, metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return PolicyInstalled
	case apierrors.IsNotFound(err):
		return PolicyMissing
	}
	return PolicyUnknown
}
