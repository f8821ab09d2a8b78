package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Components are what a look at a policy comes to in its two components, for
// tests that must not store one.
func (r *KueueReconciler) Components(ctx context.Context, policy *v1alpha1.ClusterPolicy) (fairShare, gang metav1.Condition, err error) {
	out, err := r.reconcileConfiguration(ctx, policy)
	fairShare, gang = out.components(policy)
	return fairShare, gang, err
}
