package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Components returns the conditions of a policy that is not stored.
func (r *KueueReconciler) Components(ctx context.Context, policy *v1alpha1.ClusterPolicy) (fairShare, gang metav1.Condition, err error) {
	out, err := r.reconcileConfiguration(ctx, policy)
	fairShare, gang = out.components(policy)
	return fairShare, gang, err
}
