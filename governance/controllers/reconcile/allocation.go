package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/activity"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// finalizer keeps an allocation until the objects that Kuota created for it are
// deleted.
const finalizer = "kuota.dev/allocation"

// retryInterval is when a controller reconciles again while a conflict or
// another problem persists that may end without an event.
const retryInterval = 30 * time.Second

// staleInterval is when a controller reconciles again whose cache does not have
// its last write or that of another yet.
const staleInterval = 50 * time.Millisecond

// activationGrace is how long Kueue can take to process a new ClusterQueue
// before the Ready condition reports it as pending. Without it, each of a
// thousand new teams would need another status patch.
const activationGrace = 3 * time.Second

// AllocationReconciler applies the namespace, Kueue objects and RBAC of each
// ComputeAllocation.
type AllocationReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // asks the API server itself
	Naming        desired.Naming
	Events        events.EventRecorder
	Applying      *sync.RWMutex     // read-locked while an allocation is applied; shared with RankingReconciler
	Cohort        *CohortReconciler // reserves quota before a nominal quota grows
	Capacity      *CapacityReconciler
	Activity      *activity.Log // of windows, budgets and corrections; nil without history
	Now           func() time.Time

	policies policyReader
	catalogs clusterstate.Catalogs
	writes   lastWrites // of allocations
}

// Reconcile implements reconcile.Reconciler.
func (r *AllocationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var allocation v1alpha1.ComputeAllocation
	if err := r.Get(ctx, request.NamespacedName, &allocation); err != nil {
		r.writes.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.isStale(&allocation) {
		return ctrl.Result{RequeueAfter: staleInterval}, nil
	}
	if allocation.DeletionTimestamp != nil {
		return requeueOnConflict(r.finalize(ctx, &allocation))
	}
	in, next := effective.At(&allocation, r.Now())
	result, err := r.reconcileAllocation(ctx, &allocation, in)
	return requeueOnConflict(r.requeueAt(result, &allocation, next), err)
}

// reconcileAllocation applies the objects of an allocation that is not being
// deleted, with what is active of windows and the budget.
func (r *AllocationReconciler) reconcileAllocation(ctx context.Context, allocation *v1alpha1.ComputeAllocation, in *v1alpha1.ActiveStatus) (ctrl.Result, error) {
	if allocation.Spec.Observed() {
		return r.observe(ctx, allocation)
	}
	if err := r.patchMetadata(ctx, allocation, func() { controllerutil.AddFinalizer(allocation, finalizer) }); err != nil {
		return ctrl.Result{}, err
	}
	r.Applying.RLock()
	defer r.Applying.RUnlock()
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	types, err := r.catalogs.Get(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	naming, err := r.namingOf(ctx, allocation.Spec.Department)
	if err != nil {
		return ctrl.Result{}, err
	}
	naming = naming.Under(policy)
	objects, blocked, err := r.buildObjects(ctx, allocation, in, types, naming, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	if objects.ClusterQueue == nil {
		result := ctrl.Result{}
		if blocked.reason == v1alpha1.ReasonOverAllocated {
			result.RequeueAfter = retryInterval // until other teams have less
		}
		return result, r.patchStatus(ctx, allocation, blocked)
	}
	obstacles, err := managed.Conflicts(ctx, r, allocation, objects)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(obstacles) > 0 {
		return ctrl.Result{RequeueAfter: retryInterval}, r.patchStatus(ctx, allocation, notReady(v1alpha1.ReasonBlocked, governance.JoinFieldErrors(obstacles)))
	}

	shares := policy != nil && policy.Spec.IdleCompute.ShareUnallocated
	queueName := *objects.ClusterQueue.GetName()
	wish := desired.Wish{Department: allocation.Spec.Department, Nominal: quota.Nominal(objects.Quota.Pools)}
	wishes, late, err := r.reserveShares(ctx, shares, objects, allocation, naming)
	if err != nil {
		return ctrl.Result{}, err
	}
	if got := r.Cohort.reserve(shares, allocation.Name, queueName, wish); !got.ok && got.failure == "" && got.refused == "" {
		// CohortReconciler continues with it when the Cohorts lend less, or shares that fall leave more.
		return ctrl.Result{RequeueAfter: retryInterval}, r.applyClusterQueues(ctx, objects, wishes)
	} else if !got.ok { // all fields except the quota and the department are still applied
		blocked = notReady(reasonCohort, got.failure)
		if got.refused != "" {
			blocked = notReady(v1alpha1.ReasonDepartment, got.refused+"; the quota stays as it is")
		}
		applied := quota.Applied(allocation)
		if len(applied.Pools) == 0 {
			blocked.message = strings.TrimSuffix(blocked.message, "; the quota stays as it is")
			return ctrl.Result{RequeueAfter: time.Second}, r.patchStatus(ctx, allocation, blocked)
		}
		of, kept := objects.Shares, desired.BuildResolved(effective.Allocation(allocation, in), applied, types, naming, desired.RankingOf(policy))
		applied.Shares, objects = objects.Quota.Shares, kept
		objects.Shares, objects.Quota = of, applied
		if wish.Department, err = r.keepCohort(ctx, objects, naming); err != nil {
			return ctrl.Result{}, err
		}
		wish.Nominal = quota.Nominal(applied.Pools)
	}
	if blocked.reason == "" {
		blocked = late
	}
	wishes[queueName] = wish
	if err := r.applyObjects(ctx, allocation, objects, func(queue string) bool {
		wish, is := wishes[queue]
		return is && r.Cohort.ledger.differs(queue, wish)
	}); apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, allocation, notReady("ApplyFailed", "Kubernetes rejected it, retrying: "+err.Error())))
	}
	for name, wish := range wishes {
		r.Cohort.recordWritten(name, wish)
	}
	queue, age, err := r.queuesActiveCondition(ctx, objects)
	if err != nil {
		return ctrl.Result{}, err
	}
	if queue.Reason == queuePending && meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady) == nil && age < activationGrace {
		return ctrl.Result{RequeueAfter: activationGrace}, nil // an event of the ClusterQueue triggers a reconciliation before that
	}
	recordSteps(r.Activity, allocation, in, r.Now())
	done := outcome{reason: blocked.reason, message: blocked.message, objects: &objects, active: in, queue: queue}
	if going, err := r.deletingFlavors(ctx, objects); err != nil {
		return ctrl.Result{}, err
	} else if len(going) > 0 {
		done.reason, done.message = "FlavorDeleting", fmt.Sprintf("ResourceFlavor %s is being deleted; it stays while ClusterQueues use it, and running tasks continue. "+
			"To have Kuota create it again, remove its finalizer kueue.x-k8s.io/resource-in-use", strings.Join(going, ", "))
	}
	result := ctrl.Result{}
	switch blocked.reason {
	case "":
	case reasonCohort, reasonShareWaits:
		result.RequeueAfter = time.Second
	default:
		result.RequeueAfter = retryInterval
	}
	return result, r.patchStatus(ctx, allocation, done)
}

// namingOf returns the names of a team in a department: of all departments it has that one, and
// those above it.
func (r *AllocationReconciler) namingOf(ctx context.Context, department string) (desired.Naming, error) {
	var chain []v1alpha1.Department
	for department != "" && len(desired.DepartmentChain(chain, department)) == 0 {
		var d v1alpha1.Department
		if err := r.Get(ctx, client.ObjectKey{Name: department}, &d); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return desired.Naming{}, err
		}
		chain, department = append(chain, d), desired.AppliedParent(&d)
	}
	return r.Naming.In(chain), nil
}

// keepCohort gives the ClusterQueue of objects the cohort that it has, and returns the
// department of that.
func (r *AllocationReconciler) keepCohort(ctx context.Context, objects desired.Objects, naming desired.Naming) (department string, err error) {
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &departments); err != nil {
		return "", err
	}
	var queue kueue.ClusterQueue
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: *objects.ClusterQueue.GetName()}, &queue); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	objects.KeepCohort(queue.Spec.CohortName)
	return naming.In(departments.Items).DepartmentOf(queue.Spec.CohortName), nil
}

// buildObjects returns the desired objects of an allocation. If its quota
// cannot be computed, or is more than the policy allows, or nodes moved so that it would
// move to other pools, the quota that was applied last stays and blocked contains the
// reason. All other fields are taken from the spec. Without an applied quota, objects is
// empty.
func (r *AllocationReconciler) buildObjects(ctx context.Context, allocation *v1alpha1.ComputeAllocation, in *v1alpha1.ActiveStatus, types catalog.Catalog, naming desired.Naming, policy *v1alpha1.ClusterPolicy) (objects desired.Objects, blocked outcome, err error) {
	spec, ranking := effective.Allocation(allocation, in), desired.RankingOf(policy)
	objects, errs := desired.Build(spec, types, naming, ranking)
	errs = append(errs, effective.Problems(&allocation.Spec, r.Now())...)
	applied := quota.Applied(allocation)
	moved := ""
	if allocation.Status.Active.OpenWindow() == in.OpenWindow() { // a window can have other pools
		moved = movedPools(allocation, applied, objects.Quota)
	}
	refused, err := r.refused(ctx, policy, allocation, applied, objects.Quota, types, naming)
	if err != nil {
		return desired.Objects{}, outcome{}, err
	}
	switch {
	case len(errs) > 0:
		blocked = notReady("Invalid", governance.JoinFieldErrors(errs))
	case moved != "":
		blocked = notReady(reasonPoolsMoved, moved)
	case len(refused) > 0:
		blocked = notReady(v1alpha1.ReasonOverAllocated, quota.DescribeRefused(refused)+"; the quota stays as it is")
	default:
		return objects, outcome{}, nil
	}
	if len(applied.Pools) == 0 {
		return desired.Objects{}, blocked, nil
	}
	return desired.BuildResolved(spec, applied, types, naming, ranking), blocked, nil
}

// refused returns what a team's quota raises beyond the limits of the policy. Others count
// with what Kueue has, so that one that is refused leaves its room to them.
func (r *AllocationReconciler) refused(ctx context.Context, policy *v1alpha1.ClusterPolicy, allocation *v1alpha1.ComputeAllocation, applied, wanted quota.Resolved, types catalog.Catalog, naming desired.Naming) ([]quota.Excess, error) {
	// The quota of a department is limited, and that of its teams is part of it.
	if policy == nil || len(policy.Spec.OverAllocationLimits) == 0 || allocation.Spec.Department != "" || resolvedQuota(applied).Covers(resolvedQuota(wanted)) {
		return nil, nil
	}
	var list v1alpha1.ComputeAllocationList
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &list, &departments); err != nil {
		return nil, err
	}
	before, after := resolvedQuota(applied), resolvedQuota(wanted)
	for i := range list.Items {
		if list.Items[i].Name == allocation.Name {
			continue
		}
		for pool, amounts := range r.Cohort.ledger.atLeast(desired.ClusterQueueName(&list.Items[i], naming), resolvedQuota(quota.Applied(&list.Items[i]))) {
			before.Add(pool, amounts)
			after.Add(pool, amounts)
		}
	}
	for pool, amounts := range desired.Reserved(departments.Items, list.Items, types) {
		before.Add(pool, amounts)
		after.Add(pool, amounts)
	}
	return quota.Refused(policy, before, after, types), nil
}

// reasonCohort is the reason of Ready=False while a team's nominal quota cannot
// grow because the Cohort cannot be written.
const reasonCohort = "CohortNotWritten"

// reasonPoolsMoved is the reason of Ready=False while nodes of a team's pools
// are in other pools.
const reasonPoolsMoved = "PoolsMoved"

// movedPools returns a message if the spec of an allocation that was applied
// would resolve to other pools now, and "" otherwise. Admitted tasks use quota
// of the old pools, so Kueue would count all of it as borrowed.
func movedPools(allocation *v1alpha1.ComputeAllocation, applied, now quota.Resolved) string {
	ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != allocation.Generation || len(applied.Pools) == 0 || len(now.Pools) == 0 ||
		ready.Status != metav1.ConditionTrue && ready.Reason != reasonPoolsMoved && ready.Reason != "QueueNotActive" {
		return ""
	}
	before, after := applied.PoolNames(), now.PoolNames()
	if slices.Equal(before, after) {
		return ""
	}
	return fmt.Sprintf("nodes moved to another pool: the team's quota in %s would move to %s, and stays unchanged. Move the nodes back, or set the pool in the allocation",
		strings.Join(before, ", "), strings.Join(after, ", "))
}

// requeueOnConflict replaces a conflict by a requeue, so that a lost race is no
// error in the log.
func requeueOnConflict(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleInterval}, nil
	}
	return result, err
}

// patchMetadata patches the finalizers that change sets, and nothing else. An
// update would rewrite the spec in Kuota's formatting and take its fields from
// the manager that applied them.
func (r *AllocationReconciler) patchMetadata(ctx context.Context, allocation *v1alpha1.ComputeAllocation, change func()) error {
	before := allocation.DeepCopy()
	change()
	if slices.Equal(before.Finalizers, allocation.Finalizers) {
		return nil
	}
	if err := r.Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.writes.record(allocation)
	return nil
}

func objectName(kind, name string) string { return fmt.Sprintf("%s %s", kind, name) }
