package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// observe reports the ClusterQueue of an allocation in its status, and writes no
// other object. If Kuota managed the ClusterQueue before, it is released first.
func (r *AllocationReconciler) observe(ctx context.Context, allocation *v1alpha1.ComputeAllocation) (ctrl.Result, error) {
	if controllerutil.ContainsFinalizer(allocation, finalizer) {
		if err := r.release(ctx, allocation); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.patchMetadata(ctx, allocation, func() { controllerutil.RemoveFinalizer(allocation, finalizer) })
	}
	name := allocation.Spec.ClusterQueueName
	var queue kueue.ClusterQueue
	switch err := r.Get(ctx, client.ObjectKey{Name: name}, &queue); {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case err != nil:
		return ctrl.Result{RequeueAfter: retryInterval}, r.patchStatus(ctx, allocation, notReady("NotFound", fmt.Sprintf("ClusterQueue %s does not exist", name)))
	case managed.ByKuota(&queue) && queue.Labels[desired.LabelTeam] != allocation.Name:
		return ctrl.Result{RequeueAfter: retryInterval}, r.patchStatus(ctx, allocation, notReady(v1alpha1.ReasonBlocked, fmt.Sprintf("ClusterQueue %s belongs to another team", name)))
	}
	local, err := r.localQueueOf(ctx, allocation)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, _, err := r.queueActiveCondition(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	input, err := clusterstate.AdoptionInput(ctx, r, r.Naming)
	if err != nil {
		return ctrl.Result{}, err
	}
	message := fmt.Sprintf("Kuota shows ClusterQueue %s and does not change it", name)
	if why := adoption.WhyNotManaged(input, name); why != "" {
		message += ": " + why
	}
	return ctrl.Result{}, r.patchStatus(ctx, allocation, outcome{observed: &observed{queue: &queue, local: local, message: message}, queue: state})
}

// observed is the outcome of an allocation that Kuota only shows.
type observed struct {
	queue   *kueue.ClusterQueue
	local   client.ObjectKey // empty if no LocalQueue uses the ClusterQueue
	message string
}

// localQueueOf returns the LocalQueue of an allocation that is observed: the one that
// it names, else the first of its ClusterQueue by namespace and name.
func (r *AllocationReconciler) localQueueOf(ctx context.Context, allocation *v1alpha1.ComputeAllocation) (client.ObjectKey, error) {
	var list kueue.LocalQueueList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return client.ObjectKey{}, err
	}
	var keys []client.ObjectKey
	for i := range list.Items {
		o := &list.Items[i]
		if string(o.Spec.ClusterQueue) != allocation.Spec.ClusterQueueName || allocation.Spec.Namespace != "" && o.Namespace != allocation.Spec.Namespace ||
			allocation.Spec.LocalQueueName != "" && o.Name != allocation.Spec.LocalQueueName {
			continue
		}
		keys = append(keys, client.ObjectKeyFromObject(o))
	}
	if len(keys) == 0 {
		return client.ObjectKey{}, nil
	}
	return slices.MinFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) }), nil
}

// observedQuota returns the quota of a ClusterQueue as status.quota.
func observedQuota(queue *kueue.ClusterQueue) (pools []v1alpha1.PoolQuota) {
	for flavor := range quota.Flavors(queue.Spec.ResourceGroups) {
		pool := v1alpha1.PoolQuota{Pool: string(flavor.Name)}
		for _, r := range flavor.Resources {
			pool.Resources = append(pool.Resources, v1alpha1.ResourceQuota{Name: string(r.Name), Nominal: r.NominalQuota, BorrowLimit: r.BorrowingLimit})
		}
		pools = append(pools, pool)
	}
	return pools
}
