package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/revisions"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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
	Departments *DepartmentReconciler
	Delegates   *DelegatesReconciler
	Pools       *PoolReconciler
	Ranking     *RankingReconciler
	Kueue       *KueueReconciler
	Enforcement *EnforcementReconciler
	Revisions   *RevisionReconciler // nil if no versions are stored
}

// NewReconcilers creates the reconcilers. cached reads from a cache and writes;
// live reads from the API server.
func NewReconcilers(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) Reconcilers {
	naming, applying := options.Naming, &sync.RWMutex{}
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
	unallocated := &CohortReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, Now: time.Now, requests: make(chan event.GenericEvent, 1), answered: answered{events: make(chan event.GenericEvent, 1)}}
	capacity := &CapacityReconciler{Client: cached, Naming: naming}
	all := Reconcilers{
		Allocations: &AllocationReconciler{Client: cached, APIReader: live, Naming: naming, Events: recorder, Applying: applying, Cohort: unallocated, Capacity: capacity, Now: time.Now},
		Budgets:     &BudgetReconciler{Client: cached, Now: time.Now},
		Capacity:    capacity,
		Cohort:      unallocated,
		Departments: &DepartmentReconciler{Client: cached, APIReader: live, Events: recorder, Now: time.Now},
		Delegates:   &DelegatesReconciler{Client: cached, APIReader: live, Now: time.Now},
		Pools:       &PoolReconciler{Client: cached, APIReader: live, Naming: naming},
		Ranking:     &RankingReconciler{Client: cached, APIReader: live, Applying: applying, Events: recorder, Now: time.Now},
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
	elected := func(handler handler.EventHandler) source.Source {
		return source.Channel(options.Leader.Events(), handler)
	}
	capacityChanged := builder.WithPredicates(nodeCapacityChanged(options.Naming.InstanceTypeLabel))
	const noDelay = 0

	if c.Revisions != nil {
		err := newController(manager, "revisions", 4).
			Watches(&v1alpha1.ComputeAllocation{}, c.Revisions.eventHandler(requestAllocation), builder.WithPredicates(specChanged)).
			Watches(&v1alpha1.ClusterPolicy{}, c.Revisions.eventHandler(requestPolicy), builder.WithPredicates(specChanged)).
			WatchesRawSource(elected(c.Revisions.pendingRequests())).
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
			For(&v1alpha1.ComputeAllocation{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, conditionsChanged, activeChanged))).
			Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject), builder.WithPredicates(predicate.Or(specOrLabelsChanged, predicate.AnnotationChangedPredicate{}))).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject), builder.WithPredicates(resourceQuotaChanged)).
			Watches(&corev1.LimitRange{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForObject)).
			Watches(&kueue.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), capacityChanged).
			Watches(&v1alpha1.ClusterPolicy{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll), builder.WithPredicates(activePolicyChanged)).
			Watches(&v1alpha1.Department{}, handler.EnqueueRequestsFromMapFunc(allocations.requestsForDepartment), builder.WithPredicates(departmentChanged)).
			WatchesRawSource(source.Channel(c.Cohort.answered.events, handler.EnqueueRequestsFromMapFunc(c.Cohort.answered.take))).
			WatchesRawSource(elected(handler.EnqueueRequestsFromMapFunc(allocations.requestsForAll))).
			Complete(options.Leader.Reconciler(allocations, options.ReadOnly)),
		newController(manager, "budgets", 1).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&v1alpha1.Department{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Budgets, options.ReadOnly)),
		newController(manager, "capacity", 1).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, withinCapacityMissing, quotaAssigned, conditionsChanged, activeChanged))).
			Watches(&v1alpha1.Department{}, enqueueAfter(capacityDelay), builder.WithPredicates(departmentChanged)).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), capacityChanged).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(capacityDelay), builder.WithPredicates(activePolicyChanged)).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Capacity, options.ReadOnly)),
		newController(manager, "unallocated", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(cohortDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, quotaAssigned))).
			Watches(&kueue.ClusterQueue{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&kueue.Cohort{}, enqueueAfter(cohortDelay), builder.WithPredicates(specOrLabelsChanged)).
			Watches(&v1alpha1.Department{}, enqueueAfter(cohortDelay), builder.WithPredicates(departmentChanged)).
			WatchesRawSource(source.Channel(c.Cohort.requests, enqueueAfter(cohortDelay))).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodeChanged)).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Cohort, options.ReadOnly)),
		newController(manager, "department", 1).
			For(&v1alpha1.Department{}, builder.WithPredicates(departmentChanged)).
			Watches(&v1alpha1.Department{}, handler.EnqueueRequestsFromMapFunc(c.Departments.requestsForAll), builder.WithPredicates(departmentChanged)).
			Watches(&kueue.Cohort{}, handler.EnqueueRequestsFromMapFunc(requestForDepartment), builder.WithPredicates(createdOrDeleted)).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(requestForDepartment)).
			Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(requestForDepartment)).
			WatchesRawSource(elected(handler.EnqueueRequestsFromMapFunc(c.Departments.requestsForAll))).
			Complete(options.Leader.Reconciler(c.Departments, options.ReadOnly)),
		newController(manager, "delegates", 1).
			Watches(&v1alpha1.Department{}, enqueueAfter(noDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Delegates, nil)), // also while Kuota writes nothing: no right outlasts its proof
		newController(manager, "pools", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&v1alpha1.ComputeAllocation{}, enqueueAfter(capacityDelay), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&corev1.Node{}, enqueueAfter(cohortDelay), builder.WithPredicates(nodeChanged)).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Pools, options.ReadOnly)),
		newController(manager, "ranking", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&kueue.WorkloadPriorityClass{}, enqueueAfter(cohortDelay)).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Ranking, options.ReadOnly)),
		newController(manager, "kueue", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Kueue, options.ReadOnly)),
		newController(manager, "enforcement", 1).
			Watches(&v1alpha1.ClusterPolicy{}, enqueueAfter(noDelay)).
			Watches(&corev1.Node{}, enqueueAfter(capacityDelay), builder.WithPredicates(nodeChanged)).
			Watches(&kueue.WorkloadPriorityClass{}, enqueueAfter(noDelay), builder.WithPredicates(predicate.NewPredicateFuncs(isDefaultClass))).
			Watches(&kueue.LocalQueue{}, enqueueAfter(capacityDelay), builder.WithPredicates(createdOrDeleted)).
			WatchesRawSource(elected(enqueueAfter(noDelay))).
			Complete(options.Leader.Reconciler(c.Enforcement, options.ReadOnly)),
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

// updated passes updates of objects of type T for which changed returns true, and all other
// events.
func updated[T client.Object](changed func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return changed(e.ObjectOld.(T), e.ObjectNew.(T)) }}
}

// specOrLabelsChanged passes changes of the spec or labels, not of the status.
var specOrLabelsChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// withinCapacityMissing passes allocations without the WithinCapacity
// condition.
var withinCapacityMissing = predicate.NewPredicateFuncs(func(o client.Object) bool {
	allocation, ok := o.(*v1alpha1.ComputeAllocation)
	return ok && meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionWithinCapacity) == nil
})

// conditionsChanged passes changes of an allocation's conditions. A controller
// may have compared them with a cache from before its last write, and compares
// again with this event.
var conditionsChanged = updated(func(before, after *v1alpha1.ComputeAllocation) bool {
	return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
})

// quotaAssigned passes an allocation that had no quota in its status and has one
// now, and one that is observed and has another quota.
var quotaAssigned = updated(func(before, after *v1alpha1.ComputeAllocation) bool {
	assigned := len(before.Status.Quota) == 0 && len(after.Status.Quota) > 0
	return assigned || after.Spec.Observed() && !equality.Semantic.DeepEqual(before.Status.Quota, after.Status.Quota)
})

// resourceQuotaChanged passes changes of a ResourceQuota's spec, labels or
// annotations. It has no generation, and its status changes with every pod.
var resourceQuotaChanged = updated(func(before, after *corev1.ResourceQuota) bool {
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
})

// activePolicyChanged passes changes of the active policy that matter to
// ClusterQueues: the ranking, the pools, the reported capacity of instance
// types, and the listed resources, which can be accelerators.
var activePolicyChanged = updated(func(before, after *v1alpha1.ClusterPolicy) bool {
	return desired.RankingOf(before) != desired.RankingOf(after) ||
		!equality.Semantic.DeepEqual(before.Status.Pools, after.Status.Pools) ||
		!equality.Semantic.DeepEqual(before.Spec.Resources, after.Spec.Resources) ||
		!equality.Semantic.DeepEqual(before.Status.ReportedTypes, after.Status.ReportedTypes)
})

// nodeChanged passes events that change pools: a node is created or deleted,
// its labels or capacity change, or it becomes schedulable or not.
var nodeChanged = updated(func(before, after *corev1.Node) bool {
	return !maps.Equal(before.Labels, after.Labels) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		catalog.Schedulable(before) != catalog.Schedulable(after) || !equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity)
})

// nodeCapacityChanged passes only changes of the pool, type or capacity of a node,
// not of whether it is schedulable.
func nodeCapacityChanged(instanceTypeLabel string) predicate.Predicate {
	return updated(func(before, after *corev1.Node) bool {
		return before.Labels[instanceTypeLabel] != after.Labels[instanceTypeLabel] || before.Labels[catalog.PoolLabel] != after.Labels[catalog.PoolLabel] ||
			!equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity)
	})
}

// departmentChanged passes changes of the spec of a department, of what is active of it, of what
// is applied of it, and its deletion.
var departmentChanged = updated(func(before, after *v1alpha1.Department) bool {
	return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Status.Parent != after.Status.Parent || before.Status.Cohort != after.Status.Cohort ||
		!equality.Semantic.DeepEqual(before.Status.Active, after.Status.Active) || !equality.Semantic.DeepEqual(before.Status.Budget, after.Status.Budget)
})

// requestForDepartment returns the department of an object, by its label or by the name of a
// namespace.
func requestForDepartment(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[desired.LabelDepartment]
	if name == "" {
		if _, is := object.(*corev1.Namespace); !is {
			return nil
		}
		if name = strings.TrimPrefix(object.GetName(), desired.DepartmentNamespace("")); name == object.GetName() {
			return nil
		}
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

// requestsForAll returns every department: those below one have its admins.
func (r *DepartmentReconciler) requestsForAll(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &list); err != nil {
		return nil // the cache has not synced, and will deliver every department
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: list.Items[i].Name}})
	}
	return requests
}

// requestsForDepartment returns the allocations that are below a department.
func (r *AllocationReconciler) requestsForDepartment(ctx context.Context, object client.Object) (requests []reconcile.Request) {
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &departments); err != nil {
		return nil // the cache has not synced, and will deliver every allocation
	}
	below := map[string]bool{object.GetName(): true}
	for i := range departments.Items {
		for _, d := range desired.DepartmentChain(departments.Items, departments.Items[i].Name) {
			if d.Name == object.GetName() {
				below[departments.Items[i].Name] = true
			}
		}
	}
	teams := map[string]bool{}
	r.addTeams(ctx, teams, func(spec *v1alpha1.ComputeAllocationSpec) bool { return below[spec.Department] })
	for team := range teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	return requests
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
	clusterQueue := ""
	if object.GetLabels()[desired.LabelTeam] == "" {
		switch o := object.(type) {
		case *kueue.ClusterQueue:
			clusterQueue = o.Name
		case *kueue.LocalQueue:
			clusterQueue = string(o.Spec.ClusterQueue)
		}
	}
	if clusterQueue != "" {
		r.addTeams(ctx, teams, func(spec *v1alpha1.ComputeAllocationSpec) bool { return spec.ClusterQueueName == clusterQueue })
	}
	if len(teams) == 0 && object.GetNamespace() != "" {
		r.addTeams(ctx, teams, func(spec *v1alpha1.ComputeAllocationSpec) bool { return spec.Namespace == object.GetNamespace() })
	}
	var requests []reconcile.Request
	for team := range teams {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: team}})
	}
	return requests
}

// addTeams adds the teams whose allocation names an object.
func (r *AllocationReconciler) addTeams(ctx context.Context, teams map[string]bool, names func(*v1alpha1.ComputeAllocationSpec) bool) {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache has not synced, and will deliver every allocation
	}
	for i := range list.Items {
		if names(&list.Items[i].Spec) {
			teams[list.Items[i].Name] = true
		}
	}
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
