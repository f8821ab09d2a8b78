package reconcile

import (
	"context"
	"errors"
	"sync/atomic"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CapacityReconciler sets the WithinCapacity condition of all allocations at
// once, because each depends on the quota of all others.
type CapacityReconciler struct {
	client.Client // reads from the cache
	Naming        desired.Naming

	// first has the WithinCapacity conditions of allocations without a Ready condition, by UID;
	// nil before the first reconciliation. AllocationReconciler writes them with its first
	// status: both patches would conflict, and each patch of a new allocation is a thousand
	// patches when a thousand teams are created.
	first atomic.Pointer[map[types.UID]metav1.Condition]
}

// firstCondition returns the condition of this generation of an allocation, if it is in first.
func (r *CapacityReconciler) firstCondition(allocation *v1alpha1.ComputeAllocation) (metav1.Condition, bool) {
	first := r.first.Load()
	if first == nil {
		return metav1.Condition{}, false
	}
	within, ok := (*first)[allocation.UID]
	return within, ok && within.ObservedGeneration == allocation.Generation
}

// Reconcile implements reconcile.Reconciler.
func (r *CapacityReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list); err != nil {
		return ctrl.Result{}, err
	}
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &departments); err != nil {
		return ctrl.Result{}, err
	}
	catalog, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	allocated := quota.Allocated(list.Items, catalog, "")
	for pool, amounts := range desired.Reserved(departments.Items, list.Items, catalog) {
		allocated.Add(pool, amounts)
	}
	first := map[types.UID]metav1.Condition{}
	var failed []error
	for i := range list.Items {
		allocation := &list.Items[i]
		resolved, current := quota.Effective(allocation, catalog)
		if !current || allocation.DeletionTimestamp != nil {
			continue
		}
		within := quota.WithinCapacity(allocated.Exceeding(resolved.Total().Pools, catalog))
		within.ObservedGeneration = allocation.Generation
		if meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady) == nil { // which triggers this controller again
			first[allocation.UID] = within
			continue
		}
		before := allocation.DeepCopy()
		meta.SetStatusCondition(&allocation.Status.Conditions, within)
		if equality.Semantic.DeepEqual(before.Status, allocation.Status) {
			continue
		}
		failed = append(failed, client.IgnoreNotFound(
			r.Status().Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	r.first.Store(&first)
	return requeueOnConflict(ctrl.Result{}, errors.Join(failed...))
}
