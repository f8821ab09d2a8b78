package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"
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

// BudgetReconciler writes what teams used of their budgets, and of those of their departments,
// into the status of allocations and departments. AllocationReconciler and DepartmentReconciler
// act on it. Usage that cannot be counted leaves the
// status as it is, so that an outage of the database triggers nothing.
type BudgetReconciler struct {
	client.Client                  // reads from the cache
	Usage         accounting.Store // nil without history
	Now           func() time.Time
}

// budget is a budget with where its status is.
type budget struct {
	budgets.Holder
	object client.Object
	status **v1alpha1.BudgetStatus
	teams  *[]string // whose usage counts; nil for a team
}

// Reconcile implements reconcile.Reconciler.
func (r *BudgetReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var allocations v1alpha1.ComputeAllocationList
	if err := r.List(ctx, &allocations); err != nil {
		return ctrl.Result{}, err
	}
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &departments); err != nil {
		return ctrl.Result{}, err
	}
	var failed []error
	patch := func(b budget, to *v1alpha1.BudgetStatus) {
		before, _ := b.object.DeepCopyObject().(client.Object)
		*b.status = to
		if b.teams != nil {
			*b.teams = b.Teams
		}
		failed = append(failed, client.IgnoreNotFound(r.Status().Patch(ctx, b.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	var with []budget
	var holders []budgets.Holder
	for _, b := range r.budgets(allocations.Items, departments.Items) {
		if b.Budget == nil && *b.status != nil {
			patch(b, nil)
		}
		if b.Budget != nil && b.object.GetDeletionTimestamp() == nil {
			with, holders = append(with, b), append(holders, b.Holder)
		}
	}
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
	counted, err := budgets.Count(counting, r.Usage, holders, prices, r.Now())
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Info("budgets are not counted; retrying", "error", err.Error())
	}
	for i, b := range with {
		if to := counted[i]; to != nil && (worthWriting(*b.status, to) || b.teams != nil && !slices.Equal(*b.teams, b.Teams)) {
			patch(b, to)
		}
	}
	return requeueOnConflict(again, errors.Join(failed...))
}

// budgets returns what can have a budget. The usage of a team that was deleted counts for its
// department until the period ends, so that a team that is created again does not begin at 0.
func (r *BudgetReconciler) budgets(allocations []v1alpha1.ComputeAllocation, departments []v1alpha1.Department) (all []budget) {
	below, exists := map[string][]string{}, map[string]bool{}
	for i := range allocations {
		a := &allocations[i]
		exists[a.Name] = true
		all = append(all, budget{Holder: budgets.Holder{Budget: a.Spec.Budget, Created: a.CreationTimestamp.Time, Teams: []string{a.Name}}, object: a, status: &a.Status.Budget})
		for _, d := range desired.DepartmentChain(departments, a.Spec.Department) {
			below[d.Name] = append(below[d.Name], a.Name)
		}
	}
	for i := range departments {
		d := departments[i].DeepCopy()
		teams := below[d.Name]
		if b := d.Status.Budget; b != nil && d.Spec.Budget != nil {
			if from, _, err := budgets.Period(d.Spec.Budget, r.Now()); err == nil && b.From.Time.Equal(from) {
				teams = append(teams, slices.DeleteFunc(slices.Clone(d.Status.Counted), func(team string) bool { return exists[team] })...)
			}
		}
		slices.Sort(teams)
		all = append(all, budget{Holder: budgets.Holder{Budget: d.Spec.Budget, Created: d.CreationTimestamp.Time, Teams: teams}, object: d, status: &d.Status.Budget, teams: &d.Status.Counted})
	}
	return all
}

// worthWriting reports whether a status changes for readers. A status whose seconds are
// written each time would be a write for each team and interval.
func worthWriting(before, after *v1alpha1.BudgetStatus) bool {
	return before == nil || before.Action != after.Action || before.Percent != after.Percent ||
		!before.From.Equal(&after.From) || !before.To.Equal(&after.To) ||
		after.Counted.Sub(before.Counted.Time) >= budgetWrite && !equality.Semantic.DeepEqual(before, after)
}
