package cluster

import (
	"context"

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
