package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"
	"kuota.dev/kuota/governance/quota"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer keeps an allocation until what follows from it is gone.
const finalizer = "kuota.dev/allocation"

// lookAgain is how soon an allocation that something stands in the way of is
// looked at again, should no event tell of the change.
const retryInterval = 30 * time.Second

// firstLook is how long Kueue may take over a new queue before that is told: a
// thousand new teams would be told of twice otherwise.
const activationGrace = 3 * time.Second

// Allocations turns each ComputeAllocation into its Kueue objects.
type AllocationReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // asks the API server itself
	Naming        desired.Naming
	Events        events.EventRecorder
	RankingGate   *RankingGate      // shared with the controller of the ranking
	Cohort        *CohortReconciler // is asked before a team is given more

	policies policyReader
}

// Reconcile makes one team's objects what its allocation says.
func (r *AllocationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var allocation v1alpha1.ComputeAllocation
	if err := r.Get(ctx, request.NamespacedName, &allocation); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if allocation.DeletionTimestamp != nil {
		return requeueOnConflict(r.finalize(ctx, &allocation))
	}
	return requeueOnConflict(r.reconcileAllocation(ctx, &allocation))
}

// keep makes the objects of an allocation that is there to stay.
func (r *AllocationReconciler) reconcileAllocation(ctx context.Context, allocation *v1alpha1.ComputeAllocation) (ctrl.Result, error) {
	if err := r.patchMetadata(ctx, allocation, func() { controllerutil.AddFinalizer(allocation, finalizer) }); err != nil {
		return ctrl.Result{}, err
	}
	r.RankingGate.begin()
	defer r.RankingGate.end()
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	objects, held := r.buildObjects(allocation, types, desired.RankingOf(policy))
	if objects.ClusterQueue == nil {
		return ctrl.Result{}, r.patchStatus(ctx, allocation, held)
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
	if ok, trouble := r.Cohort.reserve(shares, queueName, resolvedQuota(objects.Quota)); !ok && trouble == "" {
		return ctrl.Result{RequeueAfter: cohortDelay}, nil // the Cohort lends it, and takes it back first
	} else if !ok { // what is no matter of quota is kept
		held = notReady(reasonCohort, trouble)
		applied := quota.Applied(allocation)
		if len(applied.Pools) == 0 {
			return ctrl.Result{RequeueAfter: time.Second}, r.patchStatus(ctx, allocation, held)
		}
		objects = desired.BuildResolved(allocation, applied, types, r.Naming, desired.RankingOf(policy))
	}
	given := resolvedQuota(objects.Quota)
	if err := r.applyObjects(ctx, allocation, objects, r.Cohort.ledger.differs(queueName, given)); apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, allocation, notReady("ApplyFailed", "Kubernetes rejected it, retrying: "+err.Error())))
	}
	r.Cohort.ledger.recordWritten(queueName, given)
	queue, age, err := r.queueActiveCondition(ctx, queueName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if queue.Reason == queuePending && condition(allocation, v1alpha1.ConditionReady) == nil && age < activationGrace {
		return ctrl.Result{RequeueAfter: activationGrace}, nil // Kueue is about to say more, and an event will tell
	}
	done := outcome{reason: held.reason, message: held.message, objects: &objects, queue: queue}
	if going, err := r.deletingFlavors(ctx, objects); err != nil {
		return ctrl.Result{}, err
	} else if len(going) > 0 {
		done.reason, done.message = "FlavorDeleting", fmt.Sprintf("ResourceFlavor %s is being deleted; it stays while ClusterQueues use it, and running tasks continue. "+
			"To have Kuota create it again, remove its finalizer kueue.x-k8s.io/resource-in-use", strings.Join(going, ", "))
	}
	result := ctrl.Result{}
	switch held.reason {
	case "":
	case reasonCohort:
		result.RequeueAfter = time.Second
	default:
		result.RequeueAfter = retryInterval
	}
	return result, r.patchStatus(ctx, allocation, done)
}

// build says what should be there. Where the quota cannot be counted now, or
// nodes moved so that it would come to other pools by itself, the one that was
// written stays, and held says why; all else of the allocation is still kept.
func (r *AllocationReconciler) buildObjects(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog, ranking desired.Ranking) (objects desired.Objects, held outcome) {
	objects, wrong := desired.Build(allocation, types, r.Naming, ranking)
	applied := quota.Applied(allocation)
	switch moved := movedPools(allocation, applied, objects.Quota); {
	case len(wrong) > 0:
		held = notReady("Invalid", governance.JoinFieldErrors(wrong))
	case moved != "":
		held = notReady(reasonPoolsMoved, moved)
	default:
		return objects, outcome{}
	}
	if len(applied.Pools) == 0 {
		return desired.Objects{}, held
	}
	return desired.BuildResolved(allocation, applied, types, r.Naming, ranking), held
}

// reasonCohort is the reason of Ready=False while a team cannot be given more
// because the Cohort that lends it cannot be written.
const reasonCohort = "CohortNotWritten"

// reasonPoolsMoved is the reason of Ready=False while nodes moved from under a
// team's quota.
const reasonPoolsMoved = "PoolsMoved"

// poolsMoved says that a spec which was carried out would come to other pools
// now; empty when it would not. Tasks run by the pools that they were admitted
// to, and would be taken for borrowers.
func movedPools(allocation *v1alpha1.ComputeAllocation, applied, now quota.Resolved) string {
	ready := condition(allocation, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != allocation.Generation || len(applied.Pools) == 0 || len(now.Pools) == 0 ||
		ready.Status != metav1.ConditionTrue && ready.Reason != reasonPoolsMoved && ready.Reason != "QueueNotActive" {
		return ""
	}
	before, after := poolNames(applied), poolNames(now)
	if slices.Equal(before, after) {
		return ""
	}
	return fmt.Sprintf("nodes moved to another pool: the team's quota in %s would move to %s, and stays unchanged. Move the nodes back, or set the pool in the allocation",
		strings.Join(before, ", "), strings.Join(after, ", "))
}

func poolNames(resolved quota.Resolved) []string {
	names := make([]string, len(resolved.Pools))
	for i, pool := range resolved.Pools {
		names[i] = pool.Name
	}
	slices.Sort(names)
	return names
}

// again turns a lost race into another try instead of an error in the log.
func requeueOnConflict(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return result, err
}

// patch sends what change does to the metadata of an allocation, and nothing
// else: an update would rewrite the spec in our spelling, and take its fields
// from whoever applied them.
func (r *AllocationReconciler) patchMetadata(ctx context.Context, allocation *v1alpha1.ComputeAllocation, change func()) error {
	before := allocation.DeepCopy()
	change()
	if slices.Equal(before.Finalizers, allocation.Finalizers) {
		return nil
	}
	return r.Patch(ctx, allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func objectName(kind, name string) string { return fmt.Sprintf("%s %s", kind, name) }
