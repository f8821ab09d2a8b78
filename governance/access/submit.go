package access

import (
	"context"

	"kuota.dev/kuota/governance"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// MaySubmit reports whether user can create Jobs in a namespace. The API server
// authorizes the request again.
func (s *Service) MaySubmit(ctx context.Context, user governance.User, namespace string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "create", Group: "batch", Resource: "jobs", Namespace: namespace})
}
