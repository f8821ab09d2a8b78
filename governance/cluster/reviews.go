package cluster

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConsoleAllowed reports whether the console's own account may do what, by a
// SelfSubjectAccessReview.
func (c *Cluster) ConsoleAllowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review, err := c.reviewClientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, Translate("ask what the console may do", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// TokenAudience is the audience of the tokens of service accounts that the console accepts.
const TokenAudience = "kuota"

// ServiceAccount returns the service account that a token with TokenAudience is of, by a
// TokenReview. ok is false for every other token.
func (c *Cluster) ServiceAccount(ctx context.Context, token string) (user governance.User, ok bool, err error) {
	review, err := c.reviewClientset.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{TokenAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return user, false, Translate("ask whose token it is", err)
	}
	status := review.Status
	if !status.Authenticated || !slices.Contains(status.Audiences, TokenAudience) || !strings.HasPrefix(status.User.Username, serviceAccountPrefix) {
		return user, false, nil
	}
	return governance.User{Name: status.User.Username, Groups: status.User.Groups, ServiceAccount: true}, true, nil
}
