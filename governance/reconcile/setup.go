package reconcile

import (
	"context"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Setup adds the controllers to the manager.
func Setup(manager ctrl.Manager, naming desired.Naming) error {
	allocations := &Allocations{
		Client: manager.GetClient(),
		Live:   manager.GetAPIReader(),
		Naming: naming,
		Events: manager.GetEventRecorder("kuota"),
	}
	// Several managers may live in one process, as in tests.
	unnamed := true
	err := ctrl.NewControllerManagedBy(manager).
		Named("allocation").
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: &unnamed, RateLimiter: backoff()}).
		For(&v1alpha1.ComputeAllocation{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.teamOf)).
		Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.teamOf)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(allocations.teamOf)).
		Watches(&kueue.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(allocations.all), builder.WithPredicates(onlySpec)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(allocations.all), builder.WithPredicates(typesChanged(naming.InstanceTypeLabel))).
		Complete(allocations)
	if err != nil {
		return err
	}

	capacity := &Capacity{Client: manager.GetClient(), Naming: naming}
	return ctrl.NewControllerManagedBy(manager).
		Named("capacity").
		WithOptions(controller.Options{SkipNameValidation: &unnamed, RateLimiter: backoff()}).
		Watches(&v1alpha1.ComputeAllocation{}, soonAfter(capacityPause), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, conditionMissing, firstQuota))).
		Watches(&corev1.Node{}, soonAfter(capacityPause), builder.WithPredicates(typesChanged(naming.InstanceTypeLabel))).
		Complete(capacity)
}

// backoff is how soon what failed is tried again: never later than ten seconds
// after the cluster is back, where the default waits up to a quarter of an hour.
func backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, 10*time.Second)
}

// capacityPause gathers changes before capacity is looked at: one change may
// lead to a write for every team.
const capacityPause = 2 * time.Second

// soonAfter asks for one look, a while after the first of many events.
func soonAfter(pause time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	look := func(q queue) { q.AddAfter(reconcile.Request{}, pause) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { look(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { look(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { look(q) },
	}
}

// onlySpec passes what changes the wanted state of an object, not its status.
var onlySpec = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// conditionMissing passes an allocation that does not tell of capacity yet.
var conditionMissing = predicate.NewPredicateFuncs(func(o client.Object) bool {
	allocation, ok := o.(*v1alpha1.ComputeAllocation)
	return ok && condition(allocation, v1alpha1.ConditionWithinCapacity) == nil
})

// firstQuota passes an allocation that was blocked and has its quota now.
var firstQuota = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ComputeAllocation)
		after, ok2 := e.ObjectNew.(*v1alpha1.ComputeAllocation)
		return ok && ok2 && len(before.Status.Quota) == 0 && len(after.Status.Quota) > 0
	},
}

// typesChanged passes what changes the pools: a node that comes, goes, changes
// its type, or reports another capacity.
func typesChanged(label string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Node)
			after, ok2 := e.ObjectNew.(*corev1.Node)
			if !ok || !ok2 || before.Labels[label] != after.Labels[label] || len(before.Status.Capacity) != len(after.Status.Capacity) {
				return true
			}
			for name, amount := range after.Status.Capacity {
				if was := before.Status.Capacity[name]; was.Cmp(amount) != 0 {
					return true
				}
			}
			return false
		},
	}
}

// teamOf finds the team that an object belongs to: by its label, or, where it
// is not ours but bears a name that a team needs, by that name.
func (r *Allocations) teamOf(_ context.Context, object client.Object) []reconcile.Request {
	teams := map[string]bool{
		object.GetLabels()[desired.LabelTeam]:           true,
		object.GetAnnotations()[desired.AnnotationTeam]: true,
	}
	if base, ok := strings.CutPrefix(object.GetName(), r.Naming.Prefix); ok {
		for _, suffix := range []string{"", "-clusterqueue", "-localqueue"} {
			teams[strings.TrimSuffix(base, suffix)] = true
		}
	}
	delete(teams, "")
	var requests []reconcile.Request
	for team := range teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	return requests
}

// all asks for every allocation: what changed may matter to any of them.
func (r *Allocations) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is not filled yet, and will bring every allocation by itself
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].Name = list.Items[i].Name
	}
	return requests
}
