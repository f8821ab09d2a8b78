package reconcile

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// outcome is the result of one reconciliation.
type outcome struct {
	reason, message string // of Ready=False; empty if ready

	objects  *desired.Objects       // the applied objects; nil if none were
	active   *v1alpha1.ActiveStatus // with which they were applied
	observed *observed              // instead of objects, if Kuota only shows the ClusterQueue
	queue    metav1.Condition       // QueueActive, if objects were applied or observed
}

func notReady(reason, message string) outcome { return outcome{reason: reason, message: message} }

// reasonObserved is the reason of Ready=True of an allocation that Kuota only shows.
const reasonObserved = "Observed"

// queuePending is the reason of QueueActive until Kueue has processed a
// ClusterQueue.
const queuePending = "Pending"

// queueActiveCondition returns Kueue's Active condition of a ClusterQueue as
// QueueActive. age is the time since the ClusterQueue was created; 0 until the
// cache has it.
func (r *AllocationReconciler) queueActiveCondition(ctx context.Context, name string) (state metav1.Condition, age time.Duration, err error) {
	state = metav1.Condition{Type: v1alpha1.ConditionQueueActive, Status: metav1.ConditionUnknown, Reason: queuePending, Message: "Kueue has not processed the queue yet"}
	var queue kueue.ClusterQueue
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &queue); err != nil {
		return state, 0, client.IgnoreNotFound(err)
	}
	age = time.Since(queue.CreationTimestamp.Time)
	active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive)
	if active == nil || active.ObservedGeneration != queue.Generation {
		return state, age, nil
	}
	state.Status, state.Reason, state.Message = active.Status, active.Reason, active.Message
	return state, age, nil
}

// patchStatus patches the status of an allocation if it changed.
func (r *AllocationReconciler) patchStatus(ctx context.Context, allocation *v1alpha1.ComputeAllocation, o outcome) error {
	before := allocation.DeepCopy()
	status := &allocation.Status
	status.ObservedGeneration = allocation.Generation
	set := func(c metav1.Condition) {
		c.ObservedGeneration = allocation.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}

	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "the queue matches the allocation"}
	if o.objects != nil || o.observed != nil {
		set(o.queue)
	}
	switch {
	case o.observed != nil:
		ready.Reason, ready.Message = reasonObserved, o.observed.message
	case o.reason != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, o.reason, o.message
	case o.queue.Status == metav1.ConditionTrue || o.queue.Reason == kueue.ClusterQueueActiveReasonStopped:
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "QueueNotActive", o.queue.Message
	}
	if within, ok := r.Capacity.firstCondition(allocation); ok && meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady) == nil {
		set(within)
	}
	set(ready)
	if o.objects != nil {
		status.Namespace = *o.objects.Namespace.GetName()
		status.ClusterQueue = *o.objects.ClusterQueue.GetName()
		status.LocalQueue = *o.objects.LocalQueue.GetName()
		status.Quota = statusQuota(o.objects.Quota)
		status.Active, status.ActiveCopy = o.active, o.active
	}
	if o.observed != nil {
		status.Namespace, status.LocalQueue = o.observed.local.Namespace, o.observed.local.Name
		status.ClusterQueue, status.Quota = o.observed.queue.Name, observedQuota(o.observed.queue)
	}
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	if err := r.Status().Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.writes.record(allocation)
	return nil
}

// statusQuota returns resolved quota as status.quota.
func statusQuota(resolved quota.Resolved) []v1alpha1.PoolQuota {
	pools := make([]v1alpha1.PoolQuota, len(resolved.Pools))
	for i, pool := range resolved.Pools {
		pools[i].Pool = pool.Name
		for _, name := range resolved.Covered() {
			amount := v1alpha1.ResourceQuota{Name: name, Nominal: pool.Nominal.Quantity(name)}
			if pool.BorrowingLimit != nil {
				limit := pool.BorrowingLimit.Quantity(name)
				amount.BorrowLimit = &limit
			}
			pools[i].Resources = append(pools[i].Resources, amount)
		}
	}
	return pools
}
