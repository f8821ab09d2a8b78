package reconcile

import (
	"context"
	"errors"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CapacityReconciler sets the WithinCapacity condition of all allocations at
// once, because each depends on the quota of all others.
type CapacityReconciler struct {
	client.Client // reads from the cache
	Naming        desired.Naming
}

// Reconcile implements reconcile.Reconciler.
func (r *CapacityReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list); err != nil {
		return ctrl.Result{}, err
	}
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	allocated := quota.Allocated(list.Items, types, "")
	var failed []error
	for i := range list.Items {
		allocation := &list.Items[i]
		resolved, errs := quota.Resolve(&allocation.Spec, types)
		if len(errs) > 0 || allocation.DeletionTimestamp != nil {
			continue
		}
		// AllocationReconciler is about to write the status: both patches would
		// conflict. The Ready condition triggers this controller again.
		if meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady) == nil {
			continue
		}
		before := allocation.DeepCopy()
		within := withinCapacity(allocated.Exceeding(resolved.Pools, types))
		within.ObservedGeneration = allocation.Generation
		meta.SetStatusCondition(&allocation.Status.Conditions, within)
		if equality.Semantic.DeepEqual(before.Status, allocation.Status) {
			continue
		}
		failed = append(failed, client.IgnoreNotFound(
			r.Status().Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	return requeueOnConflict(ctrl.Result{}, errors.Join(failed...))
}

func withinCapacity(over []quota.Excess) metav1.Condition {
	if len(over) == 0 {
		return metav1.Condition{Type: v1alpha1.ConditionWithinCapacity, Status: metav1.ConditionTrue, Reason: "WithinCapacity", Message: "these pools have the capacity for the quota of all teams"}
	}
	return metav1.Condition{Type: v1alpha1.ConditionWithinCapacity, Status: metav1.ConditionFalse, Reason: "OverCapacity", Message: quota.DescribeExcess(over) + "; tasks beyond the capacity wait"}
}
