package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/activity"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// cohortDelay coalesces changes before the Cohort is reconciled.
const cohortDelay = 50 * time.Millisecond

// CohortReconciler keeps the Cohort object, which lends compute that is not
// allocated to any team. The nominal quota of the Cohort and of all teams
// together never exceeds the capacity: the Cohort shrinks before a team's quota
// grows, and grows after a team's quota shrank.
type CohortReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	Naming        desired.Naming
	Events        events.EventRecorder
	Activity      *activity.Log // nil without history

	policies policyReader
	ledger   ledger
	requests chan event.GenericEvent // triggers a reconciliation
}

// reserve reserves quota for a ClusterQueue (see ledger.reserve), and triggers
// a reconciliation if there is not enough.
func (r *CohortReconciler) reserve(shares bool, queue string, wanted quota.PoolResources) (ok bool, trouble string) {
	if ok, trouble = r.ledger.reserve(shares, queue, wanted); !ok {
		r.trigger()
	}
	return ok, trouble
}

// recordWritten records that a ClusterQueue has this quota, and triggers a
// reconciliation if the Cohort may lend more: the last one may have counted more for
// the ClusterQueue, although it saw the ClusterQueue's change.
func (r *CohortReconciler) recordWritten(queue string, has quota.PoolResources) {
	if r.ledger.recordWritten(queue, has) {
		r.trigger()
	}
}

func (r *CohortReconciler) trigger() {
	select {
	case r.requests <- event.GenericEvent{}:
	default: // a reconciliation is already triggered
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *CohortReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.ledger.suspend() // no nominal quota grows until the Cohort is written
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	naming := r.Naming.Under(policy)
	if policy == nil || !policy.Spec.IdleCompute.ShareUnallocated {
		return requeueOnConflict(ctrl.Result{}, r.disable(ctx, policy))
	}
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	var present kueue.Cohort
	if err := r.Get(ctx, client.ObjectKey{Name: naming.Cohort}, &present); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if present.Name != "" && !managed.ByKuota(&present) {
		r.ledger.disable() // the Cohort of another manager has no quota of Kuota
		return requeueOnConflict(ctrl.Result{RequeueAfter: retryInterval}, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "Blocked",
			"Cohort %s exists and is not managed by Kuota; delete it, or start Kuota with another --cohort", present.Name)))
	}
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	queues, err := r.quotaByQueue(ctx, list.Items, types, naming)
	if err != nil {
		return ctrl.Result{}, err
	}
	cohort, leftOut := desired.UnallocatedCohort(naming, queues, types)
	correction, err := r.applyCohort(ctx, cohort)
	if err != nil {
		r.ledger.resume(nil, "the Cohort that lends unallocated compute cannot be written: "+err.Error())
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "ApplyFailed",
			"Kubernetes rejected the Cohort, retrying: %v", err))))
	}
	if correction != nil {
		addCorrection(r.Events, r.Activity, policy, correction)
	}
	r.ledger.resume(queues, "")

	state := newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Shared", "Cohort %s lends unallocated compute", naming.Cohort)
	if len(leftOut) > 0 {
		state = newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "TooManyPools",
			"Kueue supports 64 pools in a Cohort, so unallocated compute of %s is not lent. Group instance types into pools", strings.Join(leftOut, ", "))
	}
	return requeueOnConflict(ctrl.Result{}, patchPolicyStatus(ctx, r, policy, nil, state))
}

// applyCohort applies the Cohort and deletes earlier ones, or deletes all if cohort is nil.
func (r *CohortReconciler) applyCohort(ctx context.Context, cohort *applykueue.CohortApplyConfiguration) (*v1alpha1.Correction, error) {
	if cohort == nil {
		return nil, r.deleteCohorts(ctx, "")
	}
	if err := r.deleteCohorts(ctx, *cohort.GetName()); err != nil {
		return nil, err
	}
	return applier{r.Client, r.APIReader}.apply(ctx, managed.NewObject("Cohort", &kueue.Cohort{}, cohort, cohort.ObjectMetaApplyConfiguration), true)
}

// deleteCohorts deletes the Cohorts that Kuota created, except one with this name: that
// of an earlier policy has another.
func (r *CohortReconciler) deleteCohorts(ctx context.Context, except string) error {
	var list kueue.CohortList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		cohort := &list.Items[i]
		if cohort.Name == except || !managed.ByKuota(cohort) || cohort.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(r.Delete(ctx, cohort.DeepCopy())); err != nil {
			return fmt.Errorf("delete Cohort %s: %w", cohort.Name, err)
		}
	}
	return nil
}

// disable deletes the Cohort, because the policy does not share unallocated
// compute.
func (r *CohortReconciler) disable(ctx context.Context, policy *v1alpha1.ClusterPolicy) error {
	if err := r.deleteCohorts(ctx, ""); err != nil {
		return err
	}
	r.ledger.disable()
	if policy == nil {
		return nil
	}
	return patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Off", "unallocated compute is not lent"))
}

// quotaByQueue returns the quota of each ClusterQueue of the cohort: the
// largest of what its allocation resolves to, what the cache has, what was
// written but may not be in the cache yet, and what it waits for.
func (r *CohortReconciler) quotaByQueue(ctx context.Context, all []v1alpha1.ComputeAllocation, types catalog.Catalog, naming desired.Naming) (map[string]quota.PoolResources, error) {
	var list kueue.ClusterQueueList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var members []*kueue.ClusterQueue
	for i := range list.Items { // a ClusterQueue of another manager in the cohort counts too
		if queue := &list.Items[i]; string(queue.Spec.CohortName) == naming.Cohort || managed.ByKuota(queue) {
			members = append(members, queue)
		}
	}
	queues := desired.QuotaByQueue(members, all, types, naming)
	r.ledger.addTo(queues)
	return queues, nil
}

// resolvedQuota returns the nominal quota of an allocation.
func resolvedQuota(resolved quota.Resolved) quota.PoolResources {
	pools := quota.PoolResources{}
	pools.AddNominal(resolved)
	return pools
}
