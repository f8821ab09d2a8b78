package allocations

import (
	"fmt"
	"net/http"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/versions"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// shownTasks is how many tasks a page names before it counts the rest.
const shownTasks = 20

// renderReview shows the effects of saving the form.
func (h *Pages) renderReview(c echo.Context, form allocationForm, state allocations.State, wanted *v1alpha1.ComputeAllocation, review allocations.Review) error {
	place := form.place()
	page := allocationviews.AllocationReview{
		Chrome: h.Chrome(c), Action: place.action, CancelURL: place.up, UpLabel: place.upLabel, Save: place.save,
		New: form.edits == nil, InPlace: forms.InPlace(c), Fields: forms.WithoutReason(form.hidden(c)), Reason: forms.ReasonField(form.Reason, "everyone who sees the team"), Incomplete: review.Unknown, Unchanged: review.Empty() && review.Unknown == "",
		Quota: quotaChanges(review.Pools), Capacity: capacityLines(review.Capacity),
		Settings: versions.ValueChanges(review.Settings), Objects: versions.ObjectLines(review.Objects),
	}
	page.Asked = form.askedWords()
	if !page.Unchanged {
		page.Preview = h.Previews.For(c, &page.Chrome, h.saveVariant(console.UserOf(c), wanted, form.newPools()))
	}
	page.Stopped.Count = len(review.Evicted)
	page.Stopped.Listed, page.Stopped.More = taskNames(review.Evicted)
	page.CannotRestart, page.MoreCannotRestart = stuckLines(review.Unadmittable)
	page.Title, page.Active = "Review: "+form.team, "policies"
	var before *v1alpha1.ComputeAllocationSpec
	if form.edits != nil {
		before = &form.edits.allocation.Spec
	}
	page.Calendar, page.CalendarCut = calendarLines(review.Calendar), review.MoreCalendar
	page.Shares = shareNotes(before, wanted, state.Policy, h.Naming)
	types := state.Types.With(form.newPools()...)
	for _, p := range form.pools {
		page.NewPools = append(page.NewPools, newPoolView(p, types))
	}
	return web.Render(c, http.StatusOK, allocationviews.AllocationReviewPage(page))
}

// askedWords says why a save asks.
func (f *allocationForm) askedWords() string {
	switch f.asked {
	case askedInterrupts:
		return "Saving interrupts running tasks, or keeps them from starting again. Nothing is saved yet."
	case askedUnknown:
		return "Effects on running tasks are not known. Nothing is saved yet."
	}
	return ""
}

func quotaChanges(pools []allocations.PoolChange) (lines []allocationviews.QuotaChange) {
	for _, p := range pools {
		goesOn := false
		all := quota.Resources{}
		for _, figures := range []quota.Resources{p.Before, p.After, p.BorrowingLimitBefore, p.BorrowingLimitAfter} {
			all.Add(figures)
		}
		for _, resource := range all.Names() {
			line := allocationviews.QuotaChange{
				Pool: p.Pool, SamePool: goesOn, Resource: format.ResourceLabel(resource),
				Before: figure(resource, p.Before), After: figure(resource, p.After),
				BorrowBefore: limitFigure(resource, p.Before, p.BorrowingLimitBefore), BorrowAfter: limitFigure(resource, p.After, p.BorrowingLimitAfter),
			}
			line.Changed, line.BorrowChanged = line.Before != line.After, line.BorrowBefore != line.BorrowAfter
			lines, goesOn = append(lines, line), true
		}
	}
	return lines
}

// figure returns an amount without its unit; a dash without quota.
func figure(resource string, figures quota.Resources) string {
	if figures == nil {
		return "–"
	}
	return quota.Grouped(resource, figures[resource])
}

// limitFigure returns a borrow limit; quota without a limit has "No limit".
func limitFigure(resource string, own, limit quota.Resources) string {
	switch {
	case own == nil && limit == nil:
		return "–"
	case limit == nil:
		return "No limit"
	}
	return quota.Grouped(resource, limit[resource])
}

func capacityLines(changes []allocations.CapacityChange) (lines []allocationviews.CapacityLine) {
	last := ""
	for _, c := range changes {
		line := allocationviews.CapacityLine{
			Pool: c.Pool, Resource: format.ResourceLabel(c.Resource),
			Physical: quota.Grouped(c.Resource, c.Physical), Before: quota.Grouped(c.Resource, c.Before), After: quota.Grouped(c.Resource, c.After),
			OverBefore: c.Before > c.Physical,
		}
		line.SamePool, last = c.Pool == last, c.Pool
		if c.OverCapacity() {
			line.Over = quota.Amount(c.Resource, c.After.Minus(c.Physical))
			if times := factor(c.After, c.Physical); times != "" {
				line.Far = fmt.Sprintf("%s the %s of this pool", times, quota.Amount(c.Resource, c.Physical))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// stuckLines returns why the first tasks could not start again, and how many more
// there are.
func stuckLines(stuck []allocations.Unadmittable) (lines []string, more int) {
	for _, s := range stuck[:min(len(stuck), shownTasks)] {
		name := s.Task.Name
		if name == "" {
			name = "A task"
		}
		lines = append(lines, fmt.Sprintf("%s requests %s; quota and borrow limit add up to %s. Once stopped, it cannot start again.",
			name, quota.Amount(s.Resource, s.Requests), quota.Grouped(s.Resource, s.Max)))
	}
	return lines, max(0, len(stuck)-shownTasks)
}

// taskNames returns the first tasks with their kind, and how many more there are.
// Tasks that the reader may not see have no name and are only counted.
func taskNames(tasks []allocations.Task) (names []string, more int) {
	for _, t := range tasks {
		if t.Name != "" && len(names) < shownTasks {
			names = append(names, t.Kind+" "+t.Name)
		}
	}
	return names, len(tasks) - len(names)
}
