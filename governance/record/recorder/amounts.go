package recorder

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
)

// Amounts returns the amounts of all series in a snapshot. Memory is in MiB, rounded
// down; Idle of a pool absorbs the difference, so that the parts add up.
func Amounts(s *capacity.Snapshot) map[history.SeriesKey]int64 {
	all := map[history.SeriesKey]int64{}
	for _, p := range s.Pools {
		for _, c := range p.Resources {
			put := func(measure history.Measure, amount resources.Amount) resources.Amount {
				amount = inHistoryUnit(c.Resource, amount)
				all[history.SeriesKey{Pool: p.Name, Resource: c.Resource, Measure: measure}] = int64(amount)
				return amount
			}
			left := put(history.Physical, c.Physical)
			left = left.Minus(put(history.OwnBound, c.OwnBound))
			left = left.Minus(put(history.BorrowedBound, c.BorrowedBound))
			left = left.Minus(put(history.Outside, c.Outside))
			left = left.Minus(put(history.Unhealthy, c.Unhealthy))
			all[history.SeriesKey{Pool: p.Name, Resource: c.Resource, Measure: history.Idle}] = int64(left)
			put(history.Quota, c.Nominal)
			put(history.Used, c.Usage)
			put(history.Unplaced, c.Unbound)
			put(history.Borrowed, c.Borrowed)
			if c.Growth > 0 { // few clusters have any
				put(history.Growth, c.Growth)
				put(history.OwnGrowth, c.OwnGrowth)
			}
		}
	}
	for _, t := range s.Teams {
		for _, c := range t.Resources {
			put := func(measure history.Measure, amount resources.Amount) {
				all[history.SeriesKey{Team: t.Name, Pool: c.Flavor, Resource: c.Resource, Measure: measure}] = int64(inHistoryUnit(c.Resource, amount))
			}
			put(history.Quota, c.Nominal)
			put(history.Used, c.Usage)
			put(history.Borrowed, c.Borrowed)
			put(history.OwnBound, c.OwnBound)
			put(history.BorrowedBound, c.BorrowedBound)
			if c.Growth > 0 { // few clusters have any
				put(history.Growth, c.Growth)
				put(history.OwnGrowth, c.OwnGrowth())
			}
			put(history.LentToCohort, c.LentBound)
			put(history.Unplaced, c.Unbound)
		}
	}
	return all
}

// inHistoryUnit converts an amount to the unit of package history.
func inHistoryUnit(resource string, amount resources.Amount) resources.Amount {
	if resource == catalog.Memory {
		return amount / catalog.MiB
	}
	return amount
}

// diffAmounts returns the amounts that differ from before, in a fixed order. Series
// that no longer exist become 0.
func diffAmounts(before, now map[history.SeriesKey]int64) []history.Amount {
	var changed []history.Amount
	for key, amount := range now {
		if was, ok := before[key]; !ok || was != amount {
			changed = append(changed, history.Amount{SeriesKey: key, Amount: amount})
		}
	}
	for key, amount := range before {
		if _, ok := now[key]; !ok && amount != 0 {
			changed = append(changed, history.Amount{SeriesKey: key})
		}
	}
	slices.SortFunc(changed, func(a, b history.Amount) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Team, b.Team), strings.Compare(string(a.Measure), string(b.Measure)))
	})
	return changed
}
