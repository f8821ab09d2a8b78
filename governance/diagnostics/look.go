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
const lookLimit = 5 * time.Second

// looker fills in a state. Each of its methods has fields of its own.
type looker struct {
	s     *Service
	ctx   context.Context
	state *State
}

func (l looker) server() {
	if version, err := l.s.Cluster.Discovery().ServerVersion(); err == nil {
		l.state.Server = version.GitVersion
	}
}

func (l looker) kueue() {
	seen, err := l.s.Kueue(l.ctx)
	switch {
	case err == nil:
		l.state.Kueue = seen
	case apierrors.IsNotFound(err):
		l.state.Unread, l.state.Cause = NotThere, "The API server reports: "+err.Error()+"."
	case apierrors.IsForbidden(err):
		l.state.Unread = Forbidden
	default:
		l.state.Unread = Failed
	}
}

// visibilityAPI is where Kueue tells the order of its queues; the API server
// passes what it is asked there on to Kueue.
const visibilityAPI = "visibility.kueue.x-k8s.io/v1beta2"

func (l looker) visibility() {
	_, err := l.s.Cluster.Discovery().ServerResourcesForGroupVersion(visibilityAPI)
	l.state.Visibility = err == nil
}

// permission asks about the console itself.
func (l looker) permission() {
	install, answer := l.s.Install, Yes
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Resource: "configmaps", Namespace: install.Namespace, Name: install.ConfigMap},
		{Verb: "update", Group: "apps", Resource: "deployments", Namespace: install.Namespace, Name: install.Deployment},
	} {
		review, err := l.s.Cluster.Clients().AuthorizationV1().SelfSubjectAccessReviews().Create(l.ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
		}, metav1.CreateOptions{})
		if err != nil {
			return
		}
		if !review.Status.Allowed {
			answer = No
		}
	}
	l.state.MayWrite = answer
}

// Names of admission policies in deploy/rbac, beside those of enforcement.
var membersPolicies = []string{"kuota-jobs", "kuota-namespaces", "kuota-workloads"}

const changedBy = "kuota-changed-by"

func (l looker) admission() {
	var all, members bool
	l.state.Enforcement, all = l.missing(enforcement.Names())
	l.state.Members, members = l.missing(membersPolicies)
	l.state.Looked = all && members
	l.state.ChangedBy = l.changedBy()
}

// missing are the admission policies that are not there, or not bound. What may
// not be looked at is not known to be missing; looked tells whether all could be.
func (l looker) missing(names []string) (missing []string, looked bool) {
	looked = true
	api := l.s.Cluster.Clients().AdmissionregistrationV1()
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

func (l looker) changedBy() Admission {
	clients := l.s.Cluster.Clients()
	served, err := l.s.Cluster.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		return NotKnown
	}
	known := false
	for _, r := range served.APIResources {
		known = known || r.Kind == "MutatingAdmissionPolicy"
	}
	if !known {
		return NotServed
	}
	api := clients.AdmissionregistrationV1()
	_, err = api.MutatingAdmissionPolicies().Get(l.ctx, changedBy, metav1.GetOptions{})
	if err == nil {
		_, err = api.MutatingAdmissionPolicyBindings().Get(l.ctx, changedBy, metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return There
	case apierrors.IsNotFound(err):
		return Missing
	}
	return NotKnown
}
