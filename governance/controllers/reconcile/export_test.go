package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReconcileConfiguration reconciles a policy that is not stored, and returns
// the condition and the status.
func (r *KueueReconciler) ReconcileConfiguration(ctx context.Context, policy *v1alpha1.ClusterPolicy) (metav1.Condition, *v1alpha1.KueueStatus, error) {
	out, err := r.reconcileConfiguration(ctx, policy)
	return out.condition, out.status, err
}

var NoteOrder = noteOrder
