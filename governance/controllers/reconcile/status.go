package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// queuesActiveCondition returns the condition of the first ClusterQueue of an allocation that is
// not active, or else of its own.
func (r *AllocationReconciler) queuesActiveCondition(ctx context.Context, objects desired.Objects) (state metav1.Condition, age time.Duration, err error) {
	for i, queue := range objects.ClusterQueues() {
		one, since, err := r.queueActiveCondition(ctx, *queue.GetName())
		if err != nil {
			return state, 0, err
		}
		if i == 0 || state.Status == metav1.ConditionTrue && one.Status != metav1.ConditionTrue {
			state, age = one, since
		}
	}
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
		status.Quota, status.Shares = statusQuota(o.objects.Quota), nil
		for _, share := range o.objects.Shares {
			i := slices.IndexFunc(o.objects.Quota.Shares, func(r quota.ShareQuota) bool { return r.Share == share.LocalQueue.Labels[desired.LabelShare] })
			if share.ClusterQueue != nil && i >= 0 {
				of := o.objects.Quota.Shares[i]
				status.Shares = append(status.Shares, v1alpha1.ShareStatus{Name: of.Share, ClusterQueue: *share.ClusterQueue.GetName(), Quota: statusQuota(of.Resolved)})
			}
		}
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

// policyComponents are the conditions that Ready of a ClusterPolicy summarizes.
var policyComponents = []string{
	v1alpha1.ConditionPriorityClasses, v1alpha1.ConditionFairShare, v1alpha1.ConditionGangScheduling,
	v1alpha1.ConditionShareUnallocated, v1alpha1.ConditionPools, v1alpha1.ConditionEnforcement,
}

// newCondition returns a condition with a formatted message.
func newCondition(name string, status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// patchPolicyStatus patches the status of a policy with what change sets, the
// conditions, and a new Ready condition, unless nothing changes. Each
// controller patches its own part. A conflict is returned, and the caller
// requeues.
func patchPolicyStatus(ctx context.Context, c client.Client, policy *v1alpha1.ClusterPolicy, change func(*v1alpha1.ClusterPolicyStatus), conditions ...metav1.Condition) error {
	after := policy.DeepCopy()
	if change != nil {
		change(&after.Status)
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = policy.Generation
		meta.SetStatusCondition(&after.Status.Conditions, condition)
	}
	meta.SetStatusCondition(&after.Status.Conditions, readyCondition(after))
	after.Status.ObservedGeneration = policy.Generation
	if equality.Semantic.DeepEqual(policy.Status, after.Status) {
		return nil
	}
	return client.IgnoreNotFound(c.Status().Patch(ctx, after, client.MergeFromWithOptions(policy, client.MergeFromWithOptimisticLock{})))
}

// readyCondition summarizes the components of a policy.
func readyCondition(policy *v1alpha1.ClusterPolicy) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "the cluster matches the policy", ObservedGeneration: policy.Generation}
	var waiting, failing []string
	for _, name := range policyComponents {
		c := meta.FindStatusCondition(policy.Status.Conditions, name)
		switch {
		case c == nil || c.ObservedGeneration != policy.Generation || c.Status == metav1.ConditionUnknown:
			waiting = append(waiting, name)
		case c.Status == metav1.ConditionFalse:
			failing = append(failing, name+": "+c.Message)
		}
	}
	switch {
	case len(failing) > 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotAsWanted", strings.Join(failing, "; ")
	case len(waiting) > 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionUnknown, "Applying", "being applied: "+strings.Join(waiting, ", ")
	}
	return ready
}
