package reconcile

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"
	"kuota.dev/kuota/governance/revisions"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Options configure the controllers.
type Options struct {
	Naming desired.Naming
	Kueue  KueueInstall
	// Namespace is the console's own.
	Namespace string
	// JobControllers are the users that make the parts of admitted jobs; none
	// means enforcement.Controllers.
	JobControllers []string
	// Revisions is where versions of policies and allocations are kept; nil keeps
	// none.
	Revisions revisions.Store
	// Held tells whether controllers write nothing now, because somebody else
	// governs the cluster; nil is never.
	ReadOnly func() bool
}

// Controllers are those that keep Kueue true. Some of them share state, so that
// they are made together.
type Reconcilers struct {
	Allocations *AllocationReconciler
	Capacity    *CapacityReconciler
	Cohort      *CohortReconciler
	Pools       *PoolReconciler
	Ranking     *RankingReconciler
	Kueue       *KueueReconciler
	Enforcement *EnforcementReconciler
	Revisions   *RevisionReconciler // nil where none are kept
}

// New makes the controllers. cached reads from a cache and writes; live reads
// from the API server itself.
func NewReconcilers(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) Reconcilers {
	naming, gate := options.Naming, &RankingGate{}
	if options.Namespace == "" {
		options.Namespace = "kuota-system"
	}
	if len(options.JobControllers) == 0 {
		options.JobControllers = enforcement.DefaultJobControllers
	}
	unallocated := &CohortReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, requests: make(chan event.GenericEvent, 1)}
	all := Reconcilers{
		Allocations: &AllocationReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, RankingGate: gate, Cohort: unallocated},
		Capacity:    &CapacityReconciler{Client: cached, Naming: naming},
		Cohort:      unallocated,
		Pools:       &PoolReconciler{Client: cached, APIReader: live, Naming: naming},
		Ranking:     &RankingReconciler{Client: cached, APIReader: live, Gate: gate, Events: recorder, Now: time.Now},
		Kueue:       &KueueReconciler{Client: cached, APIReader: live, Install: options.Kueue},
		Enforcement: &EnforcementReconciler{Client: cached, APIReader: live, Naming: naming, Namespace: options.Namespace, JobControllers: options.JobControllers},
	}
	if options.Revisions != nil {
		all.Revisions = &RevisionReconciler{Client: cached, Store: options.Revisions, Now: time.Now}
	}
	return all
}

// Setup makes the controllers and adds them to the manager.
func SetupWithManager(manager ctrl.Manager, options Options) (Reconcilers, error) {
	c := NewReconcilers(manager.GetClient(), manager.GetAPIReader(), manager.GetEventRecorder("kuota"), options)
	allocations := c.Allocations
	nodes := nodeChanged(options.Naming.InstanceTypeLabel)
	const allAtOnce = 0

	if c.Revisions != nil {
		err := newController(manager, "revisions", 4).
			Watches(&v1alpha1.ComputeAllocation{}, c.Revisions.eventHandler(requestAllocation), builder.WithPredicates(specChanged)).
			Watches(&v1alpha1.ClusterPolicy{}, c.Revisions.eventHandler(requestPolicy), builder.WithPredicates(specChanged)).
			Complete(options.skipWhileReadOnly(c.Revisions))
		if err != nil {
			return c, err
		}
	}
	return c, errors.Join(
		newController(manager, "allocation", 8).
			For(&v1alpha1.ComputeAllocation{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, conditionsChanged))).
			Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject), builder.WithPredicates(resourceQuotaChanged)).
			Watches(&corev1.LimitRange{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(nodes.capacityChanged())).
			Watches(&v1alpha1.ClusterPolicy{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(activePolicyChanged)).
			Complete(options.skipWhileReadOnly(allocations)),
		newController(manager, "capacity", 1).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, withinCapacityMissing, quotaAssigned, conditionsChanged))).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), builder.WithPredicates(nodes.capacityChanged())).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(capacityDelay), builder.WithPredicates(activePolicyChanged)).
			Complete(options.skipWhileReadOnly(c.Capacity)),
		newController(manager, "unallocated", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(allAtOnce)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, quotaAssigned))).
			Watches(&kueue.ClusterQueue{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&kueue.Cohort{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			WatchesRawSource(source.Channel(c.Cohort.requests, enqueueAfter(cohortDelay))).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodes)).
			Complete(options.skipWhileReadOnly(c.Cohort)),
		newController(manager, "pools", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(allAtOnce)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodes)).
			Complete(options.skipWhileReadOnly(c.Pools)),
		newController(manager, "ranking", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(allAtOnce)).
			Watches(&kueue.WorkloadPriorityClass{}, enqueueAfter(cohortDelay)).
			Complete(options.skipWhileReadOnly(c.Ranking)),
		newController(manager, "kueue", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(allAtOnce), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Complete(options.skipWhileReadOnly(c.Kueue)),
		newController(manager, "enforcement", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(allAtOnce)).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), builder.WithPredicates(nodes)).
			Complete(options.skipWhileReadOnly(c.Enforcement)),
	)
}

// controllerNamed begins a controller. Several managers may live in one
// process, as in tests, so that names need not be its own.
func newController(manager ctrl.Manager, name string, atOnce int) *builder.Builder {
	unnamed := true
	return ctrl.NewControllerManagedBy(manager).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce, SkipNameValidation: &unnamed, RateLimiter: rateLimiter()})
}

// backoff is how soon what failed is tried again: never later than ten seconds
// after the cluster is back, where the default waits up to a quarter of an hour.
func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, 10*time.Second)
}

// capacityPause gathers changes before capacity is looked at: one change may
// lead to a write for every team.
const capacityDelay = 2 * time.Second

// soonAfter asks for one look, a while after the first of many events.
func enqueueAfter(pause time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	look := func(q queue) { q.AddAfter(reconcile.Request{}, pause) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { look(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { look(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { look(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { look(q) },
	}
}

// onlySpec passes what changes the wanted state of an object, not its status.
var specOrLabelsChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// conditionMissing passes an allocation that does not tell of capacity yet.
var withinCapacityMissing = predicate.NewPredicateFuncs(func(o client.Object) bool {
	allocation, ok := o.(*v1alpha1.ComputeAllocation)
	return ok && condition(allocation, v1alpha1.ConditionWithinCapacity) == nil
})

// conditionsChanged passes what was written into the conditions of an
// allocation. Whoever wrote it may have compared with what the cache showed
// before its last write, and look again once that shows.
var conditionsChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ComputeAllocation)
		after, ok2 := e.ObjectNew.(*v1alpha1.ComputeAllocation)
		return ok && ok2 && !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	},
}

// firstQuota passes an allocation that was blocked and has its quota now.
var quotaAssigned = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ComputeAllocation)
		after, ok2 := e.ObjectNew.(*v1alpha1.ComputeAllocation)
		return ok && ok2 && len(before.Status.Quota) == 0 && len(after.Status.Quota) > 0
	},
}

// notStatus passes a change of a ResourceQuota's spec or labels; it has no
// generation, and its status changes with every pod.
var resourceQuotaChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ResourceQuota)
		after, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
		return !ok || !ok2 || !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
	},
}

// inForceChanged passes a change of what a policy has in force for queues: the
// ranking, the pools, the figures of types, and whether a Cohort lends.
var activePolicyChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ClusterPolicy)
		after, ok2 := e.ObjectNew.(*v1alpha1.ClusterPolicy)
		return !ok || !ok2 || desired.RankingOf(before) != desired.RankingOf(after) ||
			!equality.Semantic.DeepEqual(before.Status.Pools, after.Status.Pools) ||
			!equality.Semantic.DeepEqual(before.Status.ReportedTypes, after.Status.ReportedTypes)
	},
}

// nodesChanged passes what changes the pools: a node that comes, goes, changes
// its labels, reports another capacity, or is cordoned or not ready.
type nodeChanged string

func (nodeChanged) Create(event.CreateEvent) bool   { return true }
func (nodeChanged) Delete(event.DeleteEvent) bool   { return true }
func (nodeChanged) Generic(event.GenericEvent) bool { return true }

// Update implements predicate.Predicate.
func (nodeChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, ok2 := e.ObjectNew.(*corev1.Node)
	return !ok || !ok2 || !maps.Equal(before.Labels, after.Labels) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		catalog.Schedulable(before) != catalog.Schedulable(after) || !equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity)
}

// figures passes only what changes the figures of types and pools, not whether
// a node is in use now.
func (label nodeChanged) capacityChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Node)
			after, ok2 := e.ObjectNew.(*corev1.Node)
			return !ok || !ok2 || before.Labels[string(label)] != after.Labels[string(label)] || before.Labels[catalog.PoolLabel] != after.Labels[catalog.PoolLabel] ||
				!equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity)
		},
	}
}

// teamOf finds the team that an object belongs to: by its label, or, where it
// is not ours but bears a name that a team needs, by that name, or by the
// namespace that it lies in.
func (r *AllocationReconciler) requestsForObject(ctx context.Context, object client.Object) []reconcile.Request {
	teams := map[string]bool{
		object.GetLabels()[desired.LabelTeam]:           true,
		object.GetAnnotations()[desired.AnnotationTeam]: true,
	}
	for _, name := range []string{object.GetName(), object.GetNamespace()} {
		if base, ok := strings.CutPrefix(name, r.Naming.Prefix); ok {
			for _, suffix := range []string{"", "-clusterqueue", "-localqueue"} {
				teams[strings.TrimSuffix(base, suffix)] = true
			}
		}
	}
	delete(teams, "")
	if len(teams) == 0 && object.GetNamespace() != "" {
		teams = r.teamsByNamespace(ctx, object.GetNamespace())
	}
	var requests []reconcile.Request
	for team := range teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	return requests
}

// teamsIn are the teams whose allocation names a namespace.
func (r *AllocationReconciler) teamsByNamespace(ctx context.Context, namespace string) map[string]bool {
	teams := map[string]bool{}
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return teams // the cache is not filled yet, and will bring every allocation by itself
	}
	for i := range list.Items {
		if list.Items[i].Spec.Namespace == namespace {
			teams[list.Items[i].Name] = true
		}
	}
	return teams
}

// all asks for every allocation: what changed may matter to any of them.
func (r *AllocationReconciler) requestsForAll(ctx context.Context, _ client.Object) []reconcile.Request {
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
