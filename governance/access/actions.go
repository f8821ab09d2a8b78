package access

import (
	"context"

	"kuota.dev/kuota/governance"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// May tells whether user may do something to the objects of a resource in a
// namespace. The API server decides again when they do it.
func (s *Service) May(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace})
}

// ConsoleMay tells whether the console's own account may do that for somebody:
// as itself for the one identity of a console without sign-in, else by
// impersonation, constrained (Kubernetes 1.36) or not.
func (s *Service) ConsoleMay(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	what := authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace}
	if user.Local {
		return s.console(ctx, what)
	}
	what.Verb = "impersonate-on:user-info:" + verb
	may, err := s.console(ctx, what)
	if err != nil || may {
		return may, err
	}
	return s.console(ctx, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"})
}

// console asks about the console itself, whom no user's name can be: it is empty.
func (s *Service) console(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return s.decisions.get(ctx, keyOf(governance.User{}, what), func(ctx context.Context) (bool, error) { return s.Cluster.ConsoleAllowed(ctx, what) })
}
