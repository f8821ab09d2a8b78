package access

import (
	"context"

	"kuota.dev/kuota/governance"

	authorizationv1 "k8s.io/api/authorization/v1"
)

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
