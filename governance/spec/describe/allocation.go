package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/change"

	"k8s.io/utils/ptr"
)

// AllocationChanges returns all differences between two specs, with amounts as
// they were entered, without defaults. before is nil for a new allocation.
func AllocationChanges(before, after *v1alpha1.ComputeAllocationSpec) []change.Field {
	old := ptr.Deref(before, v1alpha1.ComputeAllocationSpec{})
	changes := rowChanges("Quota, ", old.Quota, after.Quota)
	if was, is := rowOrder(old.Quota), rowOrder(after.Quota); was != is && (len(old.Quota) > 1 || len(after.Quota) > 1) {
		changes = append(changes, change.Field{Path: "Order of preference", Before: was, After: is})
	}
	changes = append(changes, rowChanges("Borrow limit, ", old.Sharing.BorrowLimits, after.Sharing.BorrowLimits)...)
	return append(changes, AllocationSettings(before, after)...)
}

// AllocationSettings returns the differences between two specs outside the rows
// of quota. before is nil for a new allocation.
func AllocationSettings(before, after *v1alpha1.ComputeAllocationSpec) []change.Field {
	changes := differences(before, after, []setting[v1alpha1.ComputeAllocationSpec]{
		{"Display name", func(s *v1alpha1.ComputeAllocationSpec) string { return s.DisplayName }},
		{"Description", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Description }},
		{"Department", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Department }},
		{"Queue", func(s *v1alpha1.ComputeAllocationSpec) string { return activation(s.Activation) }},
		{"Existing namespace", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Namespace }},
		{"Management", func(s *v1alpha1.ComputeAllocationSpec) string { return management(s.Management) }},
		{"Existing ClusterQueue", func(s *v1alpha1.ComputeAllocationSpec) string { return s.ClusterQueueName }},
		{"Existing LocalQueue", func(s *v1alpha1.ComputeAllocationSpec) string { return s.LocalQueueName }},
		{"Cohort", cohort},
		{"Covered resources", func(s *v1alpha1.ComputeAllocationSpec) string { return strings.Join(s.CoveredResources, ", ") }},
		{"Queueing strategy", func(s *v1alpha1.ComputeAllocationSpec) string { return s.QueueingStrategy }},
	})
	changes = append(changes, memberChanges(ptr.Deref(before, v1alpha1.ComputeAllocationSpec{}).Members, after.Members, func(m v1alpha1.Member) string { return m.Kind + " " + m.Name })...)
	changes = append(changes, differences(before, after, []setting[v1alpha1.ComputeAllocationSpec]{
		{"Fair-share weight", func(s *v1alpha1.ComputeAllocationSpec) string { return fmt.Sprint(s.FairShareWeight) }},
		{"Lending and borrowing", func(s *v1alpha1.ComputeAllocationSpec) string { return strategy(s.Sharing.Strategy) }},
		{"Borrow limit", func(s *v1alpha1.ComputeAllocationSpec) string { return borrowLimit(s.Sharing) }},
		{"Preemption within the team", func(s *v1alpha1.ComputeAllocationSpec) string { return WithinTeam(s.Preemption) }},
		{"Preemption to reclaim", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Preemption.ReclaimWithinCohort }},
		{"Preemption to borrow", func(s *v1alpha1.ComputeAllocationSpec) string { return s.Preemption.BorrowWithinCohort }},
		{"Namespace ceiling", func(s *v1alpha1.ComputeAllocationSpec) string { return yesNo(s.NamespaceCeiling) }},
		{"Ceiling apart from quota", func(s *v1alpha1.ComputeAllocationSpec) string { return Ceiling(s.Ceiling) }},
		{"Default queue", func(s *v1alpha1.ComputeAllocationSpec) string { return yesNo(s.DefaultQueue) }},
		{"Default priority class", func(s *v1alpha1.ComputeAllocationSpec) string { return s.DefaultPriorityClass }},
		{"Shares", func(s *v1alpha1.ComputeAllocationSpec) string { return Shares(s.Shares) }},
		{"Budget", func(s *v1alpha1.ComputeAllocationSpec) string { return Budget(s.Budget) }},
	})...)
	return append(changes, windowChanges(ptr.Deref(before, v1alpha1.ComputeAllocationSpec{}).Windows, after.Windows)...)
}

// Ceiling returns upper bounds of single resources, such as "nvidia.com/gpu 64, pods 200".
func Ceiling(bounds []v1alpha1.ResourceQuantity) string {
	texts := make([]string, len(bounds))
	for i, bound := range bounds {
		texts[i] = bound.Name + " " + bound.Quantity.String()
	}
	return strings.Join(texts, ", ")
}

// Shares returns the shares with their weights and members, such as "high 15 (User ada),
// low 3".
func Shares(all []v1alpha1.Share) string {
	var texts []string
	for _, share := range all {
		text := fmt.Sprintf("%s %d", share.Name, share.Weight)
		var members []string
		for _, m := range share.Members {
			members = append(members, m.Kind+" "+m.Name)
		}
		if len(members) > 0 {
			text += " (" + strings.Join(members, ", ") + ")"
		}
		if share.DefaultPriorityClass != "" {
			text += ", class " + share.DefaultPriorityClass
		}
		if len(share.Kinds) > 0 {
			text += ", for " + strings.Join(share.Kinds, " and ")
		}
		if len(share.Quota) > 0 {
			text += " with " + strings.Join(quotaRows(share.Quota), " and ")
			switch limit := share.BorrowLimitPercent; {
			case limit == nil:
			case *limit == 0:
				text += ", borrows nothing"
			default:
				text += fmt.Sprintf(", borrows up to %d %%", *limit)
			}
			if share.QueueingStrategy == v1alpha1.StrictFIFO {
				text += ", in strict order"
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// rowChanges returns the rows that are added, changed or removed.
func rowChanges(prefix string, before, after []v1alpha1.QuotaRow) []change.Field {
	return ordered(prefix, before, after, func(row v1alpha1.QuotaRow) (name, words string) { return rowName(row), Amounts(row.Quantities) })
}

// rowName returns the instance type or the pool of a row; a row has one of both.
func rowName(row v1alpha1.QuotaRow) string { return row.InstanceType + row.Pool }

func rowOrder(rows []v1alpha1.QuotaRow) string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = rowName(row)
	}
	return strings.Join(names, ", ")
}

// memberChanges returns each member that is added or removed.
func memberChanges[M comparable](before, after []M, words func(M) string) (changes []change.Field) {
	for _, m := range before {
		if !slices.Contains(after, m) {
			changes = append(changes, change.Field{Path: "Member", Before: words(m)})
		}
	}
	for _, m := range after {
		if !slices.Contains(before, m) {
			changes = append(changes, change.Field{Path: "Member", After: words(m)})
		}
	}
	return changes
}

// Amounts returns the amounts of a row as they were entered, without defaults.
func Amounts(a v1alpha1.Quantities) string {
	count := func(n int64, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	var parts []string
	if a.Instances != nil {
		parts = append(parts, count(*a.Instances, "instance"))
	}
	if a.Accelerators != nil {
		parts = append(parts, count(*a.Accelerators, "accelerator"))
	}
	if p := a.Partition; p != nil {
		parts = append(parts, fmt.Sprintf("%d × %s", p.Count, p.Profile))
	}
	if a.VCPU != nil {
		parts = append(parts, quota.Amount(catalog.CPU, resources.AmountFromQuantity(catalog.CPU, *a.VCPU)))
	}
	if a.Memory != nil {
		parts = append(parts, quota.Amount(catalog.Memory, resources.AmountFromQuantity(catalog.Memory, *a.Memory)))
	}
	for _, r := range a.Resources {
		parts = append(parts, quota.Amount(r.Name, resources.AmountFromQuantity(r.Name, r.Quantity)))
	}
	return strings.Join(parts, " · ")
}

func activation(a v1alpha1.Activation) string {
	return cmp.Or(map[v1alpha1.Activation]string{v1alpha1.Hold: "Held", v1alpha1.Drain: "Drained"}[a], "Active")
}

// management returns "" for the default, so that pages show only what an admin chose.
func management(m v1alpha1.Management) string {
	if m == v1alpha1.Observe {
		return "Observed, not changed"
	}
	return ""
}

func cohort(s *v1alpha1.ComputeAllocationSpec) string {
	switch {
	case s.CohortName == nil:
		return ""
	case *s.CohortName == "":
		return "None"
	}
	return *s.CohortName
}

func strategy(s v1alpha1.SharingStrategy) string {
	return cmp.Or(map[v1alpha1.SharingStrategy]string{v1alpha1.Lend: "Lends, never borrows", v1alpha1.DontLend: "Neither lends nor borrows"}[s], "Lends and borrows")
}

// borrowLimit returns the borrow limit of a team that borrows. Absolute limits
// are only counted: their amounts are rows of their own.
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

// WithinTeam returns which tasks of its own team a task preempts.
func WithinTeam(p v1alpha1.Preemption) string {
	if p.WithinTeam == v1alpha1.PreemptNever {
		return "Never"
	}
	return "Lower priority"
}

// setting is one value of a spec, with its label on the pages.
type setting[Spec any] struct {
	label string
	value func(*Spec) string
}

// differences returns the settings that differ between two specs. before is nil
// for a new object.
func differences[Spec any](before, after *Spec, settings []setting[Spec]) []change.Field {
	var changes []change.Field
	for _, s := range settings {
		c := change.Field{Path: s.label, After: s.value(after)}
		if before != nil {
			c.Before = s.value(before)
		}
		if c.Before != c.After {
			changes = append(changes, c)
		}
	}
	return changes
}

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
