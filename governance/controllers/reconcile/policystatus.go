package reconcile

import (
	"context"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
