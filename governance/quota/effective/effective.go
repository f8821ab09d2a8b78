package effective

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// announcedWithin bounds how far ahead a window is looked for that is announced.
const announcedWithin = 31 * 24 * time.Hour

// At returns what is active of an allocation at a time, nil for its spec alone, and when
// that changes next, zero for never. The budget's part is what is counted in the status.
func At(allocation *v1alpha1.ComputeAllocation, now time.Time) (in *v1alpha1.ActiveStatus, next time.Time) {
	found := v1alpha1.ActiveStatus{}
	boundary := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, o := range Between(allocation.Spec.Windows, now, now.Add(announcedWithin)) {
		announced := o.From
		if o.Window.Notice != nil {
			announced = o.From.Add(-o.Window.Notice.Duration)
		}
		boundary(announced)
		boundary(o.From)
		boundary(o.To)
		switch {
		case !o.From.After(now):
			if found.Window == "" {
				found.Window, found.From, found.To = o.Window.Name, &metav1.Time{Time: o.From}, &metav1.Time{Time: o.To}
			}
		case !announced.After(now) && found.Announced == nil:
			found.Announced = &v1alpha1.AnnouncedWindow{Window: o.Window.Name, From: metav1.Time{Time: o.From}, To: metav1.Time{Time: o.To}}
		}
	}
	if b := allocation.Status.Budget; b != nil && allocation.Spec.Budget != nil && now.Before(b.To.Time) {
		boundary(b.To.Time)
		if strictness(b.Action) > 0 && hasStep(allocation.Spec.Budget, b.Action) {
			found.BudgetAction, found.BudgetUntil = b.Action, &metav1.Time{Time: b.To.Time}
		}
	}
	if found == (v1alpha1.ActiveStatus{}) {
		return nil, next
	}
	return &found, next
}

// hasStep reports whether a budget has an action: one that was removed ends at once.
func hasStep(b *v1alpha1.Budget, action v1alpha1.BudgetAction) bool {
	return slices.ContainsFunc(b.Steps, func(s v1alpha1.BudgetStep) bool { return s.Action == action })
}

// Spec returns a spec with what the status calls active. It shares memory with the
// allocation.
func Spec(allocation *v1alpha1.ComputeAllocation) v1alpha1.ComputeAllocationSpec {
	return with(allocation.Spec, allocation.Status.Active)
}

// Allocation returns an allocation with what is active as its spec. It is the same
// allocation while that is its spec alone, and else a copy that shares memory with it.
func Allocation(allocation *v1alpha1.ComputeAllocation, in *v1alpha1.ActiveStatus) *v1alpha1.ComputeAllocation {
	if in == nil {
		return allocation
	}
	changed := *allocation
	changed.Spec = with(allocation.Spec, in)
	return &changed
}

// InWindow returns a spec with what a window replaces.
func InWindow(spec *v1alpha1.ComputeAllocationSpec, window string) v1alpha1.ComputeAllocationSpec {
	return with(*spec, &v1alpha1.ActiveStatus{Window: window})
}

// with returns a spec with what a window and the action of a budget replace.
func with(spec v1alpha1.ComputeAllocationSpec, in *v1alpha1.ActiveStatus) v1alpha1.ComputeAllocationSpec {
	if in == nil {
		return spec
	}
	if i := slices.IndexFunc(spec.Windows, func(w v1alpha1.Window) bool { return w.Name == in.Window }); i >= 0 {
		w := &spec.Windows[i]
		if own := spec.Quota; len(w.Quota) > 0 {
			spec.Quota = w.QuotaRows()
			for i := range spec.Quota { // a row of the same pool keeps its other resources
				row := &spec.Quota[i]
				if j := slices.IndexFunc(own, func(o v1alpha1.QuotaRow) bool { return o.InstanceType == row.InstanceType && o.Pool == row.Pool }); j >= 0 {
					row.Resources = own[j].Resources
				}
			}
		}
		if s := w.Sharing; s != nil {
			spec.Sharing = v1alpha1.Sharing{Strategy: s.Strategy, BorrowLimitPercent: s.BorrowLimitPercent, Unlimited: s.Unlimited}
		}
		if w.Activation != "" {
			spec.Activation = w.Activation
		}
	}
	switch in.BudgetAction {
	case v1alpha1.BudgetBorrowNothing:
		alone := spec.CohortName != nil && *spec.CohortName == "" // it borrows nothing anyway
		if !alone && (spec.Sharing.Strategy == v1alpha1.LendAndBorrow || spec.Sharing.Strategy == "") {
			spec.Sharing = v1alpha1.Sharing{Strategy: v1alpha1.Lend}
		}
	case v1alpha1.BudgetHold:
		if spec.Activation != v1alpha1.Drain {
			spec.Activation = v1alpha1.Hold
		}
	case v1alpha1.BudgetDrain:
		spec.Activation = v1alpha1.Drain
	}
	return spec
}
