package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"
	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// cohortPause gathers changes before the Cohort is looked at.
const cohortDelay = 50 * time.Millisecond

// Unallocated keeps the Cohort object, which lends what no team was given. What
// it lends and what teams have never come to more than is there: it takes back
// before a team is given more, and lends more after a team was given less.
type CohortReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // asks the API server itself
	Naming        desired.Naming
	Events        events.EventRecorder

	policies policyReader
	ledger   ledger
	requests chan event.GenericEvent // has a value while some team waits for room
}

// grant asks for a ClusterQueue's quota: see ledger.
func (r *CohortReconciler) reserve(shares bool, queue string, wanted quota.PoolResources) (ok bool, trouble string) {
	if ok, trouble = r.ledger.reserve(shares, queue, wanted); !ok {
		select {
		case r.requests <- event.GenericEvent{}:
		default: // it is about to look
		}
	}
	return ok, trouble
}

// Reconcile makes the Cohort lend what is left now.
func (r *CohortReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.ledger.suspend() // until the Cohort is written, nobody is given more
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	if policy == nil || !policy.Spec.IdleCompute.ShareUnallocated {
		return requeueOnConflict(ctrl.Result{}, r.disable(ctx, policy))
	}
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	var present kueue.Cohort
	if err := r.Get(ctx, client.ObjectKey{Name: r.Naming.Cohort}, &present); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if present.Name != "" && !managed.ByKuota(&present) {
		r.ledger.disable() // it lends nothing of ours
		return requeueOnConflict(ctrl.Result{RequeueAfter: retryInterval}, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "Blocked",
			"Cohort %s exists and is not managed by Kuota; delete it, or start Kuota with another --cohort", present.Name)))
	}
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	queues, err := r.quotaByQueue(ctx, list.Items, types)
	if err != nil {
		return ctrl.Result{}, err
	}
	cohort, leftOut := desired.Cohort(r.Naming, desired.Unallocated(readyCapacity(types), total(queues)))
	correction, err := r.applyCohort(ctx, cohort)
	if err != nil {
		r.ledger.resume(nil, "the Cohort that lends unallocated compute cannot be written: "+err.Error())
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "ApplyFailed",
			"Kubernetes rejected the Cohort, retrying: %v", err))))
	}
	if correction != nil {
		r.Events.Eventf(policy, nil, corev1.EventTypeWarning, "Corrected", "Correct", "%s was changed by %s and corrected", correction.Object, correction.Manager)
	}
	r.ledger.resume(queues, "")

	state := newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Shared", "Cohort %s lends unallocated compute", r.Naming.Cohort)
	if len(leftOut) > 0 {
		state = newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionFalse, "TooManyPools",
			"Kueue supports 64 pools in a Cohort, so unallocated compute of %s is not lent. Group instance types into pools", strings.Join(leftOut, ", "))
	}
	return requeueOnConflict(ctrl.Result{}, patchPolicyStatus(ctx, r, policy, nil, state))
}

// write makes the Cohort as it should be; nil is that there is none.
func (r *CohortReconciler) applyCohort(ctx context.Context, cohort *applykueue.CohortApplyConfiguration) (*v1alpha1.Correction, error) {
	if cohort == nil {
		return nil, r.deleteCohort(ctx)
	}
	return applier{r.Client, r.APIReader}.apply(ctx, managed.NewObject("Cohort", &kueue.Cohort{}, cohort, cohort.ObjectMetaApplyConfiguration), true)
}

// remove takes the Cohort away, should Kuota have made one.
func (r *CohortReconciler) deleteCohort(ctx context.Context) error {
	var cohort kueue.Cohort
	err := r.Get(ctx, client.ObjectKey{Name: r.Naming.Cohort}, &cohort)
	if err != nil || !managed.ByKuota(&cohort) || cohort.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, &cohort)); err != nil {
		return fmt.Errorf("delete Cohort %s: %w", cohort.Name, err)
	}
	return nil
}

// off has nothing lent.
func (r *CohortReconciler) disable(ctx context.Context, policy *v1alpha1.ClusterPolicy) error {
	if err := r.deleteCohort(ctx); err != nil {
		return err
	}
	r.ledger.disable()
	if policy == nil {
		return nil
	}
	return patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "Off", "unallocated compute is not lent"))
}

// queues is what is given through each ClusterQueue of the cohort: the largest
// of what its allocation says, what it has, what was written into it and may not
// show in the cache yet, and what it waits for.
func (r *CohortReconciler) quotaByQueue(ctx context.Context, all []v1alpha1.ComputeAllocation, types catalog.Catalog) (map[string]quota.PoolResources, error) {
	var list kueue.ClusterQueueList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	queues := map[string]quota.PoolResources{}
	for i := range list.Items { // somebody's own queue in the cohort counts too
		if queue := &list.Items[i]; string(queue.Spec.CohortName) == r.Naming.Cohort || managed.ByKuota(queue) {
			queues[queue.Name] = queueQuota(queue)
		}
	}
	for i := range all {
		name, given := r.Naming.ClusterQueue(all[i].Name), quota.PoolResources{}
		if all[i].DeletionTimestamp == nil { // else what is left of it shows in its queue
			resolved, _ := quota.Effective(&all[i], types)
			given = resolvedQuota(resolved)
		}
		queues[name] = maxQuota(queues[name], given)
	}
	r.ledger.addTo(queues)
	return queues, nil
}

// sum is what is given of each pool through all queues.
func total(queues map[string]quota.PoolResources) quota.PoolResources {
	all := quota.PoolResources{}
	for _, pools := range queues {
		for pool, amounts := range pools {
			if all[pool] == nil {
				all[pool] = quota.Resources{}
			}
			all[pool].Add(amounts)
		}
	}
	return all
}

// nominal is the quota that a ClusterQueue has.
func queueQuota(queue *kueue.ClusterQueue) quota.PoolResources {
	pools := quota.PoolResources{}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			amounts := quota.Resources{}
			for _, r := range flavor.Resources {
				amounts[string(r.Name)] = quota.ResourceValue(string(r.Name), r.NominalQuota)
			}
			pools[string(flavor.Name)] = amounts
		}
	}
	return pools
}

// nominalOf is the quota of an allocation.
func resolvedQuota(resolved quota.Resolved) quota.PoolResources {
	pools := quota.PoolResources{}
	pools.AddNominal(resolved)
	return pools
}

// larger takes the larger of each amount.
func maxQuota(a, b quota.PoolResources) quota.PoolResources {
	if a == nil {
		a = quota.PoolResources{}
	}
	for pool, amounts := range b {
		if a[pool] == nil {
			a[pool] = quota.Resources{}
		}
		for name, amount := range amounts {
			a[pool][name] = max(a[pool][name], amount)
		}
	}
	return a
}

// ready says what can be lent of a pool now.
func readyCapacity(types catalog.Catalog) func(pool string) quota.Resources {
	return func(name string) quota.Resources {
		pool, _ := types.Find(name)
		return pool.Ready
	}
}
