package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/activity"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

const (
	// rankingInterval is how often a change of the ranking is reconciled until it
	// ends.
	rankingInterval = 500 * time.Millisecond
	// rankingQuietPeriod is how long all tasks must have their priority before the
	// change ends: Kueue may still create one from its cached class.
	rankingQuietPeriod = 2 * time.Second
	// rankingWatchPeriod is how long after a change tasks are still checked for an
	// old priority.
	rankingWatchPeriod = 5 * time.Minute
	// rankingStallTimeout is how long Kueue can update no task before this controller
	// updates the rest.
	rankingStallTimeout = 10 * time.Second
)

// RankingReconciler keeps the priority classes, and carries out each change of
// the ranking in an order in which no task is preempted for it:
//
//	Settled ──► Pausing ──► Rewriting ──► Settled
//	               └──► Settled, if the change was reverted
//
// In Pausing, preemption by priority is disabled in every ClusterQueue. In
// Rewriting, classes get their values, and Kueue, or this controller for tasks
// that Kueue misses, updates unfinished tasks. In Settled, ClusterQueues
// preempt again as the policy requires. The step is in the policy's status, so that
// a restarted console continues.
type RankingReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	// Applying delays a change of the ranking until no allocation is being applied with the
	// old one: a ClusterQueue that is written late would preempt in the middle of the change.
	Applying *sync.RWMutex
	Events   events.EventRecorder
	Activity *activity.Log // nil without history
	Now      func() time.Time

	progress progress
}

// progress is the state between two reconciliations of a change. A restart
// loses it, which only delays the end of the change.
type progress struct {
	remaining  int       // tasks with their old priority at the last reconciliation
	changedAt  time.Time // last change of remaining
	quietSince time.Time // when remaining became 0; zero while it is not
}

// Reconcile implements reconcile.Reconciler.
func (r *RankingReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := clusterstate.Policy(ctx, r)
	if policy == nil || err != nil {
		return ctrl.Result{}, err
	}
	classes, err := r.readPriorityClasses(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	ranking := v1alpha1.Ranking{Step: v1alpha1.RankingSettled}
	if policy.Status.Ranking != nil {
		ranking = *policy.Status.Ranking
	}
	switch ranking.Step {
	case v1alpha1.RankingPausing:
		return requeueOnConflict(r.reconcilePausing(ctx, policy, classes, ranking))
	case v1alpha1.RankingRewriting:
		return requeueOnConflict(r.reconcileRewriting(ctx, policy, classes, ranking))
	}
	return requeueOnConflict(r.reconcileSettled(ctx, policy, classes, ranking))
}

// Priorities returns the priority that tasks have under a policy once its ranking
// has settled, by the name of their WorkloadPriorityClass.
func (r *RankingReconciler) Priorities(ctx context.Context, policy *v1alpha1.ClusterPolicy) (map[string]int32, error) {
	classes, err := r.readPriorityClasses(ctx, policy)
	return classes.desired, err
}

// reconcileSettled applies the classes, or begins a change. A finalizer keeps a
// policy until its change ends: in the middle of it, tasks of one class would
// preempt each other.
func (r *RankingReconciler) reconcileSettled(ctx context.Context, policy *v1alpha1.ClusterPolicy, classes priorityClasses, ranking v1alpha1.Ranking) (ctrl.Result, error) {
	if policy.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(r.setFinalizer(ctx, policy, false))
	}
	if classes.changesPriorities() {
		if err := r.setFinalizer(ctx, policy, true); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.setStep(ctx, policy, ranking, v1alpha1.RankingPausing)
	}
	if err := r.setFinalizer(ctx, policy, false); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.applyPriorityClasses(ctx, policy, classes); err != nil {
		return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "ApplyFailed",
			"Kubernetes rejected the priority classes, retrying: %v", err)))
	}
	ranking.Active, ranking.ActiveCopy = policy.Spec.TaskPrioritization, policy.Spec.TaskPrioritization
	ranking.Tasks, ranking.Remaining = 0, 0
	result := ctrl.Result{}
	if len(classes.unmanaged)+len(classes.retained) > 0 {
		result.RequeueAfter = retryInterval
	}
	// Kueue may still create a task from its cached class.
	if since := r.Now().Sub(ranking.Since.Time); since < rankingWatchPeriod {
		result.RequeueAfter = retryInterval
		if since >= retryInterval {
			if err := r.rewriteWorkloads(ctx, classes); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return result, r.patchStatus(ctx, policy, ranking, classes.condition(policy))
}

// reconcilePausing disables preemption by priority in all ClusterQueues.
func (r *RankingReconciler) reconcilePausing(ctx context.Context, policy *v1alpha1.ClusterPolicy, classes priorityClasses, ranking v1alpha1.Ranking) (ctrl.Result, error) {
	if !classes.changesPriorities() { // the change was reverted
		return ctrl.Result{}, r.setStep(ctx, policy, ranking, v1alpha1.RankingSettled)
	}
	r.Applying.Lock()
	//lint:ignore SA2001 it only waits until every reconciliation that began before has ended
	r.Applying.Unlock()
	waiting, all, err := r.disablePreemption(ctx, r)
	if err == nil && waiting == 0 {
		waiting, all, err = r.disablePreemption(ctx, r.APIReader)
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "ApplyFailed",
			"preemption must be off before priorities change and cannot be switched off, retrying: %v", err)))
	}
	if waiting > 0 {
		return ctrl.Result{RequeueAfter: rankingInterval}, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, "Pausing",
			"preemption by priority is being switched off before priorities change: waiting for Kueue in %d of %d queues", waiting, all))
	}
	ranking.Tasks = int32(classes.staleWorkloads())
	return ctrl.Result{}, r.setStep(ctx, policy, ranking, v1alpha1.RankingRewriting)
}

// reconcileRewriting updates classes and tasks, and ends the change when all
// have their values.
func (r *RankingReconciler) reconcileRewriting(ctx context.Context, policy *v1alpha1.ClusterPolicy, classes priorityClasses, ranking v1alpha1.Ranking) (ctrl.Result, error) {
	// A team may be new, or another manager changed a ClusterQueue.
	if waiting, all, err := r.disablePreemption(ctx, r); err != nil || waiting > 0 {
		return ctrl.Result{RequeueAfter: rankingInterval}, errors.Join(err, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, "Pausing",
			"waiting for Kueue to switch off preemption by priority in %d of %d queues; then tasks get their new priority", waiting, all)))
	}
	if err := r.applyPriorityClasses(ctx, policy, classes); err != nil {
		return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "ApplyFailed",
			"Kubernetes rejected the priority classes, retrying: %v", err)))
	}
	remaining := classes.staleWorkloads()
	ranking.Remaining, ranking.Tasks = int32(remaining), max(ranking.Tasks, int32(remaining))
	now := r.Now()
	if r.progress.changedAt.IsZero() || remaining != r.progress.remaining {
		r.progress.remaining, r.progress.changedAt = remaining, now
	}
	if remaining > 0 || classes.changesPriorities() {
		r.progress.quietSince = time.Time{}
		if now.Sub(r.progress.changedAt) >= rankingStallTimeout {
			if err := r.rewriteWorkloads(ctx, classes); err != nil {
				return ctrl.Result{}, errors.Join(err, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "NotRewritten",
					"%d tasks cannot get their new priority, and preemption by priority stays off until they do: %v", remaining, err)))
			}
		}
	} else if r.progress.quietSince.IsZero() {
		r.progress.quietSince = now
	}
	if quiet := r.progress.quietSince; !quiet.IsZero() && now.Sub(quiet) >= rankingQuietPeriod {
		r.progress = progress{}
		ranking.Active, ranking.ActiveCopy = policy.Spec.TaskPrioritization, policy.Spec.TaskPrioritization
		ranking.Tasks, ranking.Remaining = 0, 0
		return ctrl.Result{}, r.setStep(ctx, policy, ranking, v1alpha1.RankingSettled)
	}
	return ctrl.Result{RequeueAfter: rankingInterval}, r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, "Rewriting",
		"%d of %d tasks do not have their new priority yet; preemption by priority is off until then", remaining, ranking.Tasks))
}

// setStep only writes the next step to the status. The next reconciliation
// carries it out.
func (r *RankingReconciler) setStep(ctx context.Context, policy *v1alpha1.ClusterPolicy, ranking v1alpha1.Ranking, step v1alpha1.RankingStep) error {
	ranking.Step, ranking.Since = step, metav1.NewTime(r.Now())
	return r.patchStatus(ctx, policy, ranking, newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, string(step),
		"the ranking of tasks is changing; preemption by priority is off until then"))
}

// rankingFinalizer keeps a policy until its change of the ranking ends.
const rankingFinalizer = "kuota.dev/ranking"

// setFinalizer adds or removes the finalizer of a policy.
func (r *RankingReconciler) setFinalizer(ctx context.Context, policy *v1alpha1.ClusterPolicy, stay bool) error {
	before := policy.DeepCopy()
	changed := false
	if stay {
		changed = controllerutil.AddFinalizer(policy, rankingFinalizer)
	} else {
		changed = controllerutil.RemoveFinalizer(policy, rankingFinalizer)
	}
	if !changed {
		return nil
	}
	return r.Patch(ctx, policy, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *RankingReconciler) patchStatus(ctx context.Context, policy *v1alpha1.ClusterPolicy, ranking v1alpha1.Ranking, state metav1.Condition) error {
	return patchPolicyStatus(ctx, r, policy, func(status *v1alpha1.ClusterPolicyStatus) { status.Ranking = &ranking }, state)
}

// condition returns the PriorityClasses condition of a settled ranking.
func (c priorityClasses) condition(policy *v1alpha1.ClusterPolicy) metav1.Condition {
	switch {
	case len(c.unmanaged) > 0:
		return newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "Blocked",
			"WorkloadPriorityClass %s exists and is not managed by Kuota; delete it, or rename the priority class", strings.Join(c.unmanaged, ", "))
	case len(c.retained) > 0:
		var kept []string
		for name, tasks := range c.retained {
			kept = append(kept, fmt.Sprintf("%s (%d unfinished tasks)", name, tasks))
		}
		slices.Sort(kept)
		return newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "InUse",
			"no longer in the policy, and kept because tasks use them: %s. They are deleted when these tasks finish, or when the policy is annotated %s with their names", strings.Join(kept, ", "), v1alpha1.AnnotationDropClasses)
	case policy.Spec.TaskPrioritization == v1alpha1.TaskRanking:
		return newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "Ranked", "tasks are ranked by the weight of their priority class")
	}
	return newCondition(v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "FirstComeFirstServe", "tasks are ranked by submission time; weights of priority classes have no effect")
}

// orderTime is RFC 3339 of a fixed length, so that times in UTC compare as strings.
const orderTime = "2006-01-02T15:04:05.000000Z07:00"

// noteOrder sets desired.AnnotationOrder of a ClusterQueue: Kueue 0.19 reads how it orders
// the tasks of a ClusterQueue when the ClusterQueue is created and when Kueue starts, so
// that a change of an existing one needs a restart of Kueue. A change by another manager
// that Kuota reverts does not: the annotation remains.
func noteOrder(piece managed.Object, now time.Time) {
	want, ok := piece.Desired.(*applykueue.ClusterQueueApplyConfiguration)
	live, _ := piece.Live.(*kueue.ClusterQueue)
	if !ok || live.Name == "" {
		return
	}
	mode, liveMode := "priority", "priority"
	if want.Spec.AdmissionScope != nil {
		mode = "usage"
	}
	if scope := live.Spec.AdmissionScope; scope != nil && scope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing {
		liveMode = "usage"
	}
	noted := live.Annotations[desired.AnnotationOrder]
	before, _, ok := strings.Cut(noted, " ")
	if !ok {
		before = liveMode
	}
	switch {
	case before != mode:
		want.WithAnnotations(map[string]string{desired.AnnotationOrder: mode + " " + now.UTC().Format(orderTime)})
	case noted != "":
		want.WithAnnotations(map[string]string{desired.AnnotationOrder: noted})
	default:
		delete(want.Annotations, desired.AnnotationOrder)
	}
}

// lastOrderChange returns when Kuota last changed the order of an existing ClusterQueue,
// as orderTime; empty for never.
func (r *KueueReconciler) lastOrderChange(ctx context.Context) (last string, err error) {
	var queues kueue.ClusterQueueList
	err = r.List(ctx, &queues)
	for i := range queues.Items {
		_, changed, _ := strings.Cut(queues.Items[i].Annotations[desired.AnnotationOrder], " ")
		last = max(last, changed)
	}
	return last, err
}
