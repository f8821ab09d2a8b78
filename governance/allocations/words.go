package allocations

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
)

// SpecChanges lists all that differs between two specs, as people call it, with
// figures as they were given, without defaults. before is nil for a new
// allocation.
func SpecChanges(before, after *v1alpha1.ComputeAllocationSpec) []FieldChange {
	none := v1alpha1.ComputeAllocationSpec{}
	was := before
	if was == nil {
		was = &none
	}
	changes := rowChanges("Quota, ", was.Quota, after.Quota)
	if old, now := order(was.Quota), order(after.Quota); old != now && (len(was.Quota) > 1 || len(after.Quota) > 1) {
		changes = append(changes, FieldChange{Path: "Order of preference", Before: old, After: now})
	}
	changes = append(changes, rowChanges("Borrow limit, ", was.Sharing.BorrowLimits, after.Sharing.BorrowLimits)...)
	return append(changes, settings(before, after)...)
}

// rowChanges lists the rows that come, go or change: those of the new spec in
// their order, then those that go.
func rowChanges(start string, before, after []v1alpha1.QuotaRow) (changes []FieldChange) {
	was, is := map[string]string{}, map[string]string{}
	for _, row := range before {
		was[row.InstanceType+row.Pool] = AmountsWords(row.Amounts)
	}
	for _, row := range after {
		name := row.InstanceType + row.Pool
		is[name] = AmountsWords(row.Amounts)
		if was[name] != is[name] {
			changes = append(changes, FieldChange{Path: start + name, Before: was[name], After: is[name]})
		}
	}
	for _, row := range before {
		name := row.InstanceType + row.Pool
		if _, stays := is[name]; !stays {
			changes = append(changes, FieldChange{Path: start + name, Before: was[name]})
		}
	}
	return changes
}

func order(rows []v1alpha1.QuotaRow) string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.InstanceType + row.Pool
	}
	return strings.Join(names, ", ")
}

// AmountsWords are the figures of a row as they were given, without defaults.
func AmountsWords(a v1alpha1.Amounts) string {
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
		parts = append(parts, quota.Amount(catalog.CPU, a.VCPU.MilliValue()))
	}
	if a.Memory != nil {
		parts = append(parts, quota.Amount(catalog.Memory, a.Memory.Value()))
	}
	return strings.Join(parts, " · ")
}
