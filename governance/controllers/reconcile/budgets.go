package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/governance/report/budgets"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// budgetInterval is how often usage is counted. What a team uses beyond a step is at
	// most that of this time, of the recorder's heartbeat and of a reconciliation.
	budgetInterval = 15 * time.Second
	// budgetWrite is how often a status is written whose percentage does not change.
	budgetWrite = 5 * time.Minute
	// budgetPatience bounds the database's time for all budgets.
	budgetPatience = 30 * time.Second
)

// BudgetReconciler writes what teams used of their budgets into the status of their
// allocations. AllocationReconciler acts on it. Usage that cannot be counted leaves the
// status as it is, so that an outage of the database triggers nothing.
type BudgetReconciler struct {
	client.Client                  // reads from the cache
	Usage         accounting.Store // nil without history
	Now           func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r *BudgetReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var list v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &list); err != nil {
		return ctrl.Result{}, err
	}
	var failed []error
	patch := func(a *v1alpha1.ComputeAllocation, to *v1alpha1.BudgetStatus) {
		before := a.DeepCopy()
		a.Status.Budget = to
		failed = append(failed, client.IgnoreNotFound(r.Status().Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	with := slices.DeleteFunc(list.Items, func(a v1alpha1.ComputeAllocation) bool {
		if a.Spec.Budget == nil && a.Status.Budget != nil {
			patch(&a, nil)
		}
		return a.Spec.Budget == nil || a.DeletionTimestamp != nil
	})
	if len(with) == 0 || r.Usage == nil {
		return requeueOnConflict(ctrl.Result{}, errors.Join(failed...))
	}
	again := ctrl.Result{RequeueAfter: budgetInterval}
	policy, err := clusterstate.Policy(ctx, r)
	if err != nil {
		return again, err
	}
	var prices accounting.Prices
	if policy != nil {
		prices = accounting.PricesOf(policy.Spec.Prices)
	}
	counting, cancel := context.WithTimeout(ctx, budgetPatience)
	defer cancel()
	counted, err := budgets.Count(counting, r.Usage, with, prices, r.Now())
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Info("budgets are not counted; retrying", "error", err.Error())
	}
	for i := range with {
		if to := counted[with[i].Name]; to != nil && worthWriting(with[i].Status.Budget, to) {
			patch(&with[i], to)
		}
	}
	return requeueOnConflict(again, errors.Join(failed...))
}

// worthWriting reports whether a status changes for readers. A status whose seconds are
// written each time would be a write for each team and interval.
func worthWriting(before, after *v1alpha1.BudgetStatus) bool {
	return before == nil || before.Action != after.Action || before.Percent != after.Percent ||
		!before.From.Equal(&after.From) || !before.To.Equal(&after.To) ||
		after.Counted.Sub(before.Counted.Time) >= budgetWrite && !equality.Semantic.DeepEqual(before, after)
}
