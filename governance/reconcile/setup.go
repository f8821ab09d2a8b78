package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/leader"
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
	// Namespace is the namespace of the console.
	Namespace string
	// JobControllers are the users that create the pods and jobs of admitted jobs;
	// empty means enforcement.DefaultJobControllers.
	JobControllers []string
	// Revisions stores the versions of policies and allocations; nil stores none.
	Revisions revisions.Store
	// RecordsUsers reports whether the API server records who changes a spec; nil
	// means that it does.
	RecordsUsers func() bool
	// ReadOnly reports whether controllers must not write now, because HyperPod's
	// add-on manages the cluster; nil means never.
	ReadOnly func() bool
	// Leader elects the replica whose controllers reconcile; nil means that there is
	// only one replica.
	Leader *leader.Leader
}

// Reconcilers are all reconcilers. Some share state, so they are created
// together.
type Reconcilers struct {
	Allocations *AllocationReconciler
	Budgets     *BudgetReconciler
	Capacity    *CapacityReconciler
	Cohort      *CohortReconciler
	Pools       *PoolReconciler
	Ranking     *RankingReconciler
	Kueue       *KueueReconciler
	Enforcement *EnforcementReconciler
	Revisions   *RevisionReconciler // nil if no versions are stored
}

// NewReconcilers creates the reconcilers. cached reads from a cache and writes;
// live reads from the API server.
func NewReconcilers(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) Reconcilers {
	naming, gate := options.Naming, &RankingGate{}
	if options.Namespace == "" {
		options.Namespace = "kuota-system"
	}
	if len(options.JobControllers) == 0 {
		options.JobControllers = enforcement.DefaultJobControllers
	}
	var console []string
	if naming.Console != "" {
		console = []string{naming.Console} // it creates the Jobs of ElasticJobs
	}
	unallocated := &CohortReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, requests: make(chan event.GenericEvent, 1)}
	capacity := &CapacityReconciler{Client: cached, Naming: naming}
	all := Reconcilers{
		Allocations: &AllocationReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, RankingGate: gate, Cohort: unallocated, Capacity: capacity, Now: time.Now},
		Budgets:     &BudgetReconciler{Client: cached, Now: time.Now},
		Capacity:    capacity,
		Cohort:      unallocated,
		Pools:       &PoolReconciler{Client: cached, APIReader: live, Naming: naming},
		Ranking:     &RankingReconciler{Client: cached, APIReader: live, Gate: gate, Events: recorder, Now: time.Now},
		Kueue:       &KueueReconciler{Client: cached, APIReader: live, Install: options.Kueue, Now: time.Now},
		Enforcement: &EnforcementReconciler{Client: cached, APIReader: live, Naming: naming, Namespace: options.Namespace, JobControllers: slices.Concat(options.JobControllers, console), Now: time.Now},
	}
	if options.Revisions != nil {
		all.Revisions = &RevisionReconciler{Client: cached, Store: options.Revisions, Now: time.Now, RecordsUsers: options.RecordsUsers}
	}
	return all
}

// SetupWithManager creates the reconcilers and adds their controllers to the
// manager.
func SetupWithManager(manager ctrl.Manager, options Options) (Reconcilers, error) {
	c := NewReconcilers(manager.GetClient(), manager.GetAPIReader(), manager.GetEventRecorder("kuota"), options)
	allocations := c.Allocations
	onTerm := func(handler handler.EventHandler) source.Source {
		return source.Channel(options.Leader.Events(), handler)
	}
	nodes := nodeChanged(options.Naming.InstanceTypeLabel)
	const noDelay = 0

	if c.Revisions != nil {
		err := newController(manager, "revisions", 4).
			Watches(&v1alpha1.ComputeAllocation{}, c.Revisions.eventHandler(requestAllocation), builder.WithPredicates(specChanged)).
			Watches(&v1alpha1.ClusterPolicy{}, c.Revisions.eventHandler(requestPolicy), builder.WithPredicates(specChanged)).
			WatchesRawSource(onTerm(c.Revisions.pendingRequests())).
			Complete(c.Revisions.followLeader(options))
		if err != nil {
			return c, err
		}
	}
	if options.Leader != nil {
		options.Leader.OnElected(c.catchUp, func() {})
	}
	return c, errors.Join(
		newController(manager, "allocation", 8).
			For(&v1alpha1.ComputeAllocation{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, conditionsChanged, inForceChanged))).
			Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject), builder.WithPredicates(resourceQuotaChanged)).
			Watches(&corev1.LimitRange{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(nodes.capacityChanged())).
			Watches(&v1alpha1.ClusterPolicy{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(activePolicyChanged)).
			WatchesRawSource(onTerm(handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll))).
			Complete(options.onlyLeader(allocations)),
		newController(manager, "budgets", 1).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Budgets)),
		newController(manager, "capacity", 1).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, withinCapacityMissing, quotaAssigned, conditionsChanged, inForceChanged))).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), builder.WithPredicates(nodes.capacityChanged())).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(capacityDelay), builder.WithPredicates(activePolicyChanged)).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Capacity)),
		newController(manager, "unallocated", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, quotaAssigned))).
			Watches(&kueue.ClusterQueue{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&kueue.Cohort{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			WatchesRawSource(source.Channel(c.Cohort.requests, enqueueAfter(cohortDelay))).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodes)).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Cohort)),
		newController(manager, "pools", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodes)).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Pools)),
		newController(manager, "ranking", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&kueue.WorkloadPriorityClass{}, enqueueAfter(cohortDelay)).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Ranking)),
		newController(manager, "kueue", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Kueue)),
		newController(manager, "enforcement", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), builder.WithPredicates(nodes)).
			Watches(&kueue.WorkloadPriorityClass{}, enqueueAfter(noDelay), builder.WithPredicates(predicate.NewPredicateFuncs(isDefaultClass))).
			Watches(&kueue.LocalQueue{}, enqueueAfter(capacityDelay), builder.WithPredicates(createdOrDeleted)).
			WatchesRawSource(onTerm(enqueueAfter(noDelay))).
			Complete(options.onlyLeader(c.Enforcement)),
	)
}

// createdOrDeleted passes no changes.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// isDefaultClass passes Kueue's default priority class, which enforcement admits.
func isDefaultClass(o client.Object) bool { return o.GetName() == enforcement.DefaultClass }

// newController starts the builder of a controller.
func newController(manager ctrl.Manager, name string, atOnce int) *builder.Builder {
	return ctrl.NewControllerManagedBy(manager).Named(name).WithOptions(cluster.ControllerOptions(atOnce, 10*time.Second))
}

// capacityDelay coalesces changes before capacity is computed: one change may
// lead to a patch for every team.
const capacityDelay = 2 * time.Second

// enqueueAfter coalesces events into one request, which is enqueued delay after
// the first of them.
func enqueueAfter(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queue) { q.AddAfter(reconcile.Request{}, delay) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { enqueue(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { enqueue(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { enqueue(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { enqueue(q) },
	}
}

// specOrLabelsChanged passes changes of the spec or labels, not of the status.
var specOrLabelsChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// withinCapacityMissing passes allocations without the WithinCapacity
// condition.
var withinCapacityMissing = predicate.NewPredicateFuncs(func(o client.Object) bool {
	allocation, ok := o.(*v1alpha1.ComputeAllocation)
	return ok && condition(allocation, v1alpha1.ConditionWithinCapacity) == nil
})

// conditionsChanged passes changes of an allocation's conditions. A controller
// may have compared them with a cache from before its last write, and compares
// again with this event.
var conditionsChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ComputeAllocation)
		after, ok2 := e.ObjectNew.(*v1alpha1.ComputeAllocation)
		return ok && ok2 && !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	},
}

// quotaAssigned passes an allocation that had no quota in its status and has one
// now, and one that is observed and has another quota.
var quotaAssigned = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ComputeAllocation)
		after, ok2 := e.ObjectNew.(*v1alpha1.ComputeAllocation)
		if !ok || !ok2 {
			return false
		}
		assigned := len(before.Status.Quota) == 0 && len(after.Status.Quota) > 0
		return assigned || after.Spec.Observed() && !equality.Semantic.DeepEqual(before.Status.Quota, after.Status.Quota)
	},
}

// resourceQuotaChanged passes changes of a ResourceQuota's spec, labels or
// annotations. It has no generation, and its status changes with every pod.
var resourceQuotaChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ResourceQuota)
		after, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
		return !ok || !ok2 || !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
	},
}

// activePolicyChanged passes changes of the active policy that matter to
// ClusterQueues: the ranking, the pools and the reported capacity of instance
// types.
var activePolicyChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ClusterPolicy)
		after, ok2 := e.ObjectNew.(*v1alpha1.ClusterPolicy)
		return !ok || !ok2 || desired.RankingOf(before) != desired.RankingOf(after) ||
			!equality.Semantic.DeepEqual(before.Status.Pools, after.Status.Pools) ||
			!equality.Semantic.DeepEqual(before.Status.ReportedTypes, after.Status.ReportedTypes)
	},
}

// nodeChanged passes events that change pools: a node is created or deleted,
// its labels or capacity change, or it becomes schedulable or not. Its value is
// the instance type label.
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

// capacityChanged passes only changes of the pool, type or capacity of a node,
// not of whether it is schedulable.
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

// requestsForObject returns the teams of an object: by its label or annotation,
// by a name that a team needs, or else by its namespace.
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
	if object.GetLabels()[desired.LabelTeam] == "" {
		maps.Copy(teams, r.teamsByClusterQueue(ctx, object))
	}
	if len(teams) == 0 && object.GetNamespace() != "" {
		teams = r.teamsByNamespace(ctx, object.GetNamespace())
	}
	var requests []reconcile.Request
	for team := range teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	return requests
}

// teamsByNamespace returns the teams whose allocation names a namespace.
func (r *AllocationReconciler) teamsByNamespace(ctx context.Context, namespace string) map[string]bool {
	teams := map[string]bool{}
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return teams // the cache has not synced, and will deliver every allocation
	}
	for i := range list.Items {
		if list.Items[i].Spec.Namespace == namespace {
			teams[list.Items[i].Name] = true
		}
	}
	return teams
}

// teamsByClusterQueue returns the teams whose allocation names a ClusterQueue, or that
// of a LocalQueue.
func (r *AllocationReconciler) teamsByClusterQueue(ctx context.Context, object client.Object) map[string]bool {
	name := ""
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		name = o.Name
	case *kueue.LocalQueue:
		name = string(o.Spec.ClusterQueue)
	default:
		return nil
	}
	teams := map[string]bool{}
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not synced, and will deliver every allocation
	}
	for i := range list.Items {
		if list.Items[i].Spec.ClusterQueueName == name {
			teams[list.Items[i].Name] = true
		}
	}
	return teams
}

// requestsForAll returns every allocation.
func (r *AllocationReconciler) requestsForAll(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not synced, and will deliver every allocation
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].Name = list.Items[i].Name
	}
	return requests
}
