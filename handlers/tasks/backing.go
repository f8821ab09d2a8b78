package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/queries"
	taskviews "kuota.dev/kuota/views/tasks"
)

// backingOf returns whose quota a task uses; nil for a task that uses none.
func backingOf(d queries.Detail) *taskviews.QuotaSource {
	if d.QuotaSources == nil || len(d.QuotaSources.Sources) == 0 {
		return nil
	}
	owner := "its team's"
	if d.Team == "" {
		owner = "its queue's"
	}
	b := &taskviews.QuotaSource{Tone: "ok", Headline: fmt.Sprintf("It runs on %s own quota.", owner), Text: "No other team can reclaim it."}
	if d.QuotaSources.Borrows() {
		l := primarySource(d.QuotaSources.Sources)
		b.Tone, b.Headline = "wait", fmt.Sprintf("It borrows %s of its %s.", quota.Grouped(l.Resource, l.Borrowed), quota.Amount(l.Resource, l.Usage))
		if l.Own == 0 {
			b.Headline = fmt.Sprintf("It borrows its %s.", quota.Amount(l.Resource, l.Usage))
		}
		b.Text = "A team that lends it can reclaim its quota. Kueue then preempts tasks of borrowing teams, the lowest class and the latest started first."
		b.Note = "Kueue does not record which task borrows. Here, higher classes and earlier admissions count as own quota, and unallocated compute is lent before idle quota."
	}
	byPool := slices.Clone(d.QuotaSources.Sources)
	slices.SortStableFunc(byPool, func(a, b queries.QuotaSource) int { return strings.Compare(a.Flavor, b.Flavor) })
	for _, l := range byPool {
		if l.Resource == catalog.Network {
			continue
		}
		if n := len(b.Pools); n == 0 || b.Pools[n-1].Name != l.Flavor {
			b.Pools = append(b.Pools, taskviews.QuotaSourcePool{Name: l.Flavor})
		}
		pool := &b.Pools[len(b.Pools)-1]
		pool.Lines = append(pool.Lines, backingWords(l, owner))
	}
	return b
}

// primarySource returns the borrowed line that the page shows first: an accelerator,
// if one is borrowed. It returns the zero line if nothing is borrowed.
func primarySource(lines []queries.QuotaSource) (found queries.QuotaSource) {
	for _, l := range lines {
		if l.Borrowed > 0 && (found.Borrowed == 0 || isPlain(found.Resource) && !isPlain(l.Resource)) {
			found = l
		}
	}
	return found
}

func isPlain(resource string) bool { return resource == catalog.CPU || resource == catalog.Memory }

func backingWords(l queries.QuotaSource, owner string) string {
	number := func(n resources.Amount) string { return quota.Grouped(l.Resource, n) }
	text := quota.Amount(l.Resource, l.Usage)
	if l.Borrowed == 0 {
		return text + ", own quota"
	}
	parts := []string{}
	if l.Own > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s own quota", number(l.Own), owner))
	}
	if l.Unallocated > 0 {
		parts = append(parts, number(l.Unallocated)+" of unallocated compute")
	}
	for _, lender := range l.Lenders {
		if lender.Cohort != "" {
			parts = append(parts, fmt.Sprintf("%s of the quota of %s that no team has", number(lender.Amount), lender.Cohort))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s lent by %s", number(lender.Amount), cmp.Or(lender.Team, "other teams")))
	}
	if l.Uncovered > 0 {
		parts = append(parts, number(l.Uncovered)+" over quota, since a quota was lowered")
	}
	return text + ": " + strings.Join(parts, ", ")
}
