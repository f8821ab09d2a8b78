package reconcile

import (
	"cmp"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/spec/describe"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// boundaryCheck bounds the time until an allocation with windows is reconciled again, for
// clocks that are set, and for windows further ahead than effective.At looks.
const boundaryCheck = 15 * time.Minute

// requeueAt returns a result that reconciles an allocation again at the next boundary of a
// window or budget.
func (r *AllocationReconciler) requeueAt(result ctrl.Result, allocation *v1alpha1.ComputeAllocation, next time.Time) ctrl.Result {
	if len(allocation.Spec.Windows) == 0 && next.IsZero() {
		return result
	}
	wait := boundaryCheck
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(r.Now()), time.Millisecond))
	}
	if result.RequeueAfter == 0 || wait < result.RequeueAfter {
		result.RequeueAfter = wait
	}
	return result
}

// activeChanged passes changes of what is counted of a budget that At depends on.
var activeChanged = updated(func(before, after *v1alpha1.ComputeAllocation) bool {
	return !equality.Semantic.DeepEqual(stepOf(before), stepOf(after)) || !equality.Semantic.DeepEqual(before.Status.Active, after.Status.Active)
})

// stepOf returns what of a budget's status decides.
func stepOf(a *v1alpha1.ComputeAllocation) *v1alpha1.BudgetStatus {
	if a.Status.Budget == nil {
		return nil
	}
	return &v1alpha1.BudgetStatus{From: a.Status.Budget.From, To: a.Status.Budget.To, Action: a.Status.Budget.Action}
}

// recordSteps records each window that opened or closed and each step of the budget since
// the status was written. An entry that is recorded again, because the status could not be
// written, has the same id, and history keeps the first: what is in the id comes from the
// status, or does not change.
func recordSteps(log *activity.Log, allocation *v1alpha1.ComputeAllocation, in *v1alpha1.ActiveStatus, now time.Time) {
	was, is := ptr.Deref(allocation.Status.Active, v1alpha1.ActiveStatus{}), ptr.Deref(in, v1alpha1.ActiveStatus{})
	before, after := effective.Spec(allocation), effective.Allocation(allocation, in).Spec
	var changes []string
	for _, f := range describe.AllocationChanges(&before, &after) {
		changes = append(changes, fmt.Sprintf("%s: %s → %s", f.Path, cmp.Or(f.Before, "none"), cmp.Or(f.After, "none")))
	}
	add := func(action audit.Action, id, reason string, changes []string) {
		log.Add(history.Activity{
			ID: fmt.Sprintf("%s-%s-%s", action, allocation.UID, id), At: now.UTC(), Actor: "kuota", Source: history.SourceController, Action: string(action),
			Kind: "ComputeAllocation", Name: allocation.Name, UID: string(allocation.UID), Team: allocation.Name, Changes: changes, Reason: reason, Outcome: history.Succeeded,
		})
	}
	opening := func(f v1alpha1.ActiveStatus) string {
		if f.Window == "" || f.From == nil {
			return ""
		}
		return fmt.Sprintf("%s-%d", f.Window, f.From.Unix())
	}
	if old, opened := opening(was), opening(is); old != opened {
		if old != "" {
			add(audit.CloseWindow, old, "window "+was.Window, changes)
		}
		if opened != "" {
			add(audit.OpenWindow, opened, "window "+is.Window, changes)
		}
	}
	if was.BudgetAction != is.BudgetAction {
		until := cmp.Or(is.BudgetUntil, was.BudgetUntil)
		id := fmt.Sprintf("%d-%d-%s", until.Unix(), allocation.Status.ObservedGeneration, is.BudgetAction)
		reason := "the budget no longer limits the team"
		if is.BudgetAction != "" {
			reason = fmt.Sprintf("the team used %d %% of its budget: %s", allocation.Status.Budget.Percent, describe.BudgetAction(is.BudgetAction))
		}
		add(audit.BudgetStep, id, reason, changes)
	}
}
