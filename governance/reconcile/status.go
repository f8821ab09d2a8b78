package reconcile

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// outcome is what one reconciliation came to.
type outcome struct {
	reason, message string // why it is not ready; empty when nothing is wrong

	objects *desired.Objects // what was applied; nil when nothing was
	queue   metav1.Condition // QueueActive, when objects were applied
}

func notReady(reason, message string) outcome { return outcome{reason: reason, message: message} }

// queuePending is the reason of QueueActive until Kueue has looked at a queue.
const queuePending = "Pending"

// queueState reads what Kueue says of a ClusterQueue, as our condition.
// age is the time since the ClusterQueue was created; 0 until the cache has it.
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

// report writes the conditions of an allocation, if they changed.
func (r *AllocationReconciler) patchStatus(ctx context.Context, allocation *v1alpha1.ComputeAllocation, o outcome) error {
	before := allocation.DeepCopy()
	status := &allocation.Status
	status.ObservedGeneration = allocation.Generation
	set := func(c metav1.Condition) {
		c.ObservedGeneration = allocation.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}

	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "the queue matches the allocation"}
	if o.objects != nil {
		set(o.queue)
	}
	switch {
	case o.reason != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, o.reason, o.message
	case o.queue.Status == metav1.ConditionTrue || o.queue.Reason == kueue.ClusterQueueActiveReasonStopped:
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "QueueNotActive", o.queue.Message
	}
	set(ready)
	if o.objects != nil {
		status.Namespace = *o.objects.Namespace.GetName()
		status.ClusterQueue = *o.objects.ClusterQueue.GetName()
		status.LocalQueue = *o.objects.LocalQueue.GetName()
		status.Quota = statusQuota(o.objects.Quota)
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

// statusQuota is the arithmetic as status shows it.
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

func condition(allocation *v1alpha1.ComputeAllocation, name string) *metav1.Condition {
	i := slices.IndexFunc(allocation.Status.Conditions, func(c metav1.Condition) bool { return c.Type == name })
	if i < 0 {
		return nil
	}
	return &allocation.Status.Conditions[i]
}
