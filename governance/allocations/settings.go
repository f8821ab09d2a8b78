package allocations

import (
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// settings lists the values that change beside the quota, as people call them.
// before is nil for a new allocation.
func settings(before, after *v1alpha1.ComputeAllocationSpec) []FieldChange {
	var changes []FieldChange
	told := func(path string, value func(*v1alpha1.ComputeAllocationSpec) string) {
		change := FieldChange{Path: path, After: value(after)}
		if before != nil {
			change.Before = value(before)
		}
		if change.Before != change.After {
			changes = append(changes, change)
		}
	}
	told("Display name", func(s *v1alpha1.ComputeAllocationSpec) string { return s.DisplayName })
	told("Description", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Description })
	told("Queue", func(s *v1alpha1.ComputeAllocationSpec) string { return activation(s.Activation) })
	told("Existing namespace", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Namespace })
	changes = append(changes, members(before, after)...)
	told("Fair-share weight", func(s *v1alpha1.ComputeAllocationSpec) string { return fmt.Sprint(s.FairShareWeight) })
	told("Lending and borrowing", func(s *v1alpha1.ComputeAllocationSpec) string { return strategy(s.Sharing.Strategy) })
	told("Borrow limit", func(s *v1alpha1.ComputeAllocationSpec) string { return borrowLimit(s.Sharing) })
	told("Preemption within the team", func(s *v1alpha1.ComputeAllocationSpec) string { return withinTeam(s.Preemption) })
	told("Namespace ceiling", func(s *v1alpha1.ComputeAllocationSpec) string { return yes(s.NamespaceCeiling) })
	told("Default queue", func(s *v1alpha1.ComputeAllocationSpec) string { return yes(s.DefaultQueue) })
	return changes
}

func activation(a v1alpha1.Activation) string {
	switch a {
	case v1alpha1.Hold:
		return "Held"
	case v1alpha1.Drain:
		return "Drained"
	}
	return "Active"
}

func strategy(s v1alpha1.SharingStrategy) string {
	switch s {
	case v1alpha1.Lend:
		return "Lends, never borrows"
	case v1alpha1.DontLend:
		return "Neither lends nor borrows"
	}
	return "Lends and borrows"
}

// borrowLimit is what limits a team that borrows; the figures of absolute
// limits stand with the pools.
func borrowLimit(s v1alpha1.Sharing) string {
	if s.Strategy == v1alpha1.Lend || s.Strategy == v1alpha1.DontLend {
		return ""
	}
	text := fmt.Sprintf("%d %%", v1alpha1.DefaultBorrowLimitPercent)
	switch {
	case s.Unlimited:
		text = "Unlimited"
	case s.BorrowLimitPercent != nil:
		text = fmt.Sprintf("%d %%", *s.BorrowLimitPercent)
	}
	switch n := len(s.BorrowLimits); n {
	case 0:
	case 1:
		text += ", other limits in 1 pool"
	default:
		text += fmt.Sprintf(", other limits in %d pools", n)
	}
	return text
}

func withinTeam(p v1alpha1.Preemption) string {
	if p.WithinTeam == v1alpha1.PreemptNever {
		return "Never"
	}
	return "Lower priority"
}

func yes(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}

// members lists who joins and who leaves, each by itself.
func members(before, after *v1alpha1.ComputeAllocationSpec) []FieldChange {
	var was []v1alpha1.Member
	if before != nil {
		was = before.Members
	}
	var changes []FieldChange
	for _, m := range was {
		if !slices.Contains(after.Members, m) {
			changes = append(changes, FieldChange{Path: "Member", Before: m.Kind + " " + m.Name})
		}
	}
	for _, m := range after.Members {
		if !slices.Contains(was, m) {
			changes = append(changes, FieldChange{Path: "Member", After: m.Kind + " " + m.Name})
		}
	}
	return changes
}
