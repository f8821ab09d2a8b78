package access

import (
	"context"
	"strings"

	"kuota.dev/kuota/governance"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// May reports whether user can do something to a resource in a namespace. The
// API server authorizes the request again.
func (s *Service) May(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	return s.may(ctx, user, attributes(verb, resource, namespace))
}

// attributes describes a request; the resource may have a subresource, as in
// deployments/scale.
func attributes(verb string, resource schema.GroupVersionResource, namespace string) authorizationv1.ResourceAttributes {
	name, subresource, _ := strings.Cut(resource.Resource, "/")
	return authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: name, Subresource: subresource, Namespace: namespace}
}

// ConsoleMay reports whether the console's account can do that for user: as
// itself for the local user of a console without sign-in, else by
// impersonation, constrained (Kubernetes 1.36) or not.
func (s *Service) ConsoleMay(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	return s.consoleMay(ctx, user, attributes(verb, resource, namespace))
}

func (s *Service) consoleMay(ctx context.Context, user governance.User, what authorizationv1.ResourceAttributes) (bool, error) {
	if user.Local {
		return s.console(ctx, what)
	}
	what.Verb = "impersonate-on:user-info:" + what.Verb
	may, err := s.console(ctx, what)
	if err != nil || may {
		return may, err
	}
	return s.console(ctx, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"})
}

// console sends a review for the console's account. Its cache key has an empty
// user name, which no user has.
func (s *Service) console(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return s.decisions.get(ctx, keyOf(governance.User{}, what), maxDecisions, func(ctx context.Context) (bool, error) { return s.Cluster.ConsoleAllowed(ctx, what) })
}

// MayReadLogs reports whether user can read the logs of pods in a namespace, and the
// console can do so for them. The API server authorizes the request again.
func (s *Service) MayReadLogs(ctx context.Context, user governance.User, namespace string) (bool, error) {
	what := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: namespace}
	may, err := s.may(ctx, user, what)
	if err != nil || !may {
		return false, err
	}
	return s.consoleMay(ctx, user, what)
}
