package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/change"
)

// windowChanges returns the windows that are added, changed or removed.
func windowChanges(before, after []v1alpha1.Window) []change.Field {
	pairs := func(windows []v1alpha1.Window) map[string]string {
		texts := map[string]string{}
		for i := range windows {
			texts[windows[i].Name] = Window(&windows[i])
		}
		return texts
	}
	return named("Window ", pairs(before), pairs(after))
}

// When returns when a window is open, such as "Mon–Fri 22:00–06:00 Europe/Berlin".
func When(w *v1alpha1.Window) string {
	zone := cmp.Or(w.TimeZone, "UTC")
	between := func(text string) string { return strings.Replace(text, "T", " ", 1) }
	when := between(w.From) + "–" + between(w.To) + " " + zone
	if len(w.Days) > 0 {
		when = Days(w.Days) + " " + when
	}
	return when
}

// Days returns days of the week in their order from Monday, three and more in a row as
// a range, such as "Mon–Fri, Sun".
func Days(days []v1alpha1.Weekday) string {
	var parts []string
	week := slices.Concat(v1alpha1.Weekdays[1:], v1alpha1.Weekdays[:1])
	for i := 0; i < len(week); i++ {
		last := i
		for last < len(week) && slices.Contains(days, week[last]) {
			last++
		}
		switch length := last - i; {
		case length == 0:
			continue
		case length > 2:
			parts = append(parts, string(week[i][:3])+"–"+string(week[last-1][:3]))
			i = last
		default:
			parts = append(parts, string(week[i][:3]))
		}
	}
	return strings.Join(parts, ", ")
}

// quotaRows returns rows such as "a100 16 accelerators".
func quotaRows(quota []v1alpha1.WindowQuota) (rows []string) {
	for i := range quota {
		row := quota[i].Row()
		rows = append(rows, rowName(row)+" "+Amounts(row.Quantities))
	}
	return rows
}

// Replaces returns what a window replaces, such as "16 accelerators of a100, borrows up to
// 50 %, on hold".
func Replaces(w *v1alpha1.Window) string {
	parts := quotaRows(w.Quota)
	if w.Sharing != nil {
		sharing := v1alpha1.Sharing{Strategy: w.Sharing.Strategy, BorrowLimitPercent: w.Sharing.BorrowLimitPercent, Unlimited: w.Sharing.Unlimited}
		text := strings.ToLower(strategy(sharing.Strategy))
		if limit := borrowLimit(sharing); limit != "" {
			text += " up to " + strings.ToLower(limit)
		}
		parts = append(parts, text)
	}
	if w.Activation != "" {
		parts = append(parts, "queue "+strings.ToLower(activation(w.Activation)))
	}
	return strings.Join(parts, ", ")
}

// Window returns when a window is open and what it replaces.
func Window(w *v1alpha1.Window) string {
	text := When(w) + ": " + Replaces(w)
	if w.Notice != nil && w.Notice.Duration > 0 {
		text += "; announced " + Duration(w.Notice) + " before"
	}
	return text
}

// Budget returns a budget, such as "1000 accelerator hours each month (UTC): notify at
// 80 %, hold at 100 %"; empty for none.
func Budget(b *v1alpha1.Budget) string {
	if b == nil {
		return ""
	}
	zone := cmp.Or(b.TimeZone, "UTC")
	var steps []string
	for _, step := range Steps(b) {
		steps = append(steps, fmt.Sprintf("%s at %d %%", BudgetAction(step.Action), step.Percent))
	}
	return fmt.Sprintf("%s each %s (%s): %s", BudgetAmount(b), strings.ToLower(string(b.Period)), zone, strings.Join(steps, ", "))
}

// Steps returns the steps of a budget in the order of their actions.
func Steps(b *v1alpha1.Budget) []v1alpha1.BudgetStep {
	return slices.SortedFunc(slices.Values(b.Steps), func(x, y v1alpha1.BudgetStep) int {
		return slices.Index(v1alpha1.BudgetActions, x.Action) - slices.Index(v1alpha1.BudgetActions, y.Action)
	})
}

// BudgetAmount returns how much a budget is, with its unit.
func BudgetAmount(b *v1alpha1.Budget) string {
	if b.AcceleratorHours != nil {
		return strconv.FormatInt(*b.AcceleratorHours, 10) + " accelerator hours"
	}
	return b.Money + " of money"
}

// BudgetAction returns what an action does.
func BudgetAction(a v1alpha1.BudgetAction) string {
	return wordsOr(a, map[v1alpha1.BudgetAction]string{
		v1alpha1.BudgetNotify: "notify", v1alpha1.BudgetBorrowNothing: "borrow nothing", v1alpha1.BudgetHold: "hold", v1alpha1.BudgetDrain: "drain",
	})
}

// Active returns sentences about what replaces parts of the spec of an allocation now, and
// about a window that is announced; none for nothing.
func Active(a *v1alpha1.ComputeAllocation) (lines []string) {
	in := a.Status.Active
	if in == nil {
		return nil
	}
	window := func(name string) (w *v1alpha1.Window, place *time.Location) {
		i := slices.IndexFunc(a.Spec.Windows, func(w v1alpha1.Window) bool { return w.Name == name })
		if i < 0 {
			return nil, nil
		}
		return &a.Spec.Windows[i], location(a.Spec.Windows[i].TimeZone)
	}
	if w, place := window(in.Window); w != nil && in.To != nil {
		lines = append(lines, fmt.Sprintf("Window %s until %s: %s.", w.Name, moment(in.To.Time, place), Replaces(w)))
	}
	if in.BudgetAction != "" && in.BudgetUntil != nil && a.Spec.Budget != nil {
		lines = append(lines, fmt.Sprintf("Budget used: %s until %s.", map[v1alpha1.BudgetAction]string{
			v1alpha1.BudgetBorrowNothing: "the team borrows nothing more", v1alpha1.BudgetHold: "no task is admitted", v1alpha1.BudgetDrain: "no task is admitted, and admitted tasks are requeued",
		}[in.BudgetAction], moment(in.BudgetUntil.Time, location(a.Spec.Budget.TimeZone))))
	}
	if next := in.Announced; next != nil {
		if w, place := window(next.Window); w != nil {
			lines = append(lines, fmt.Sprintf("Window %s from %s until %s: %s.", w.Name, moment(next.From.Time, place), moment(next.To.Time, place), Replaces(w)))
		}
	}
	return lines
}

// roughly returns a time in days, hours, minutes or seconds.
func roughly(d time.Duration) string {
	for _, unit := range []struct {
		time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if d >= 2*unit.Duration {
			return fmt.Sprintf("%d %s", d/unit.Duration, unit.name)
		}
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// location returns a time zone; UTC for one that does not exist.
func location(name string) *time.Location {
	if place, err := effective.Location(name); err == nil {
		return place
	}
	return time.UTC
}

// moment returns a time on the clocks of a place.
func moment(at time.Time, place *time.Location) string {
	return at.In(place).Format("Mon 2 Jan 15:04 MST")
}

// BudgetUsage returns a sentence about what a team used of its budget; empty without a budget.
func BudgetUsage(a *v1alpha1.ComputeAllocation) string {
	b, s := a.Spec.Budget, a.Status.Budget
	if b == nil {
		return ""
	}
	if s == nil {
		return "Budget: " + BudgetAmount(b) + " each " + strings.ToLower(string(b.Period)) + ", not counted yet."
	}
	place := location(b.TimeZone)
	text := fmt.Sprintf("Budget: %d %% of %s used since %s", s.Percent, BudgetAmount(b), s.From.In(place).Format("2 Jan"))
	if s.Projected != "" {
		text += fmt.Sprintf("; %s used, and at the rate of the last hour %s by %s", s.Used, s.Projected, s.To.In(place).Format("2 Jan"))
	}
	if s.Unknown != nil {
		text += "; " + roughly(s.Unknown.Duration) + " of it not recorded"
	}
	return text + "."
}

// Held returns "Held" or "Drained" if the queue of a team in these departments, the nearest
// first, admits no tasks now, with sentences about the cause and the end; empty otherwise.
func Held(a *v1alpha1.ComputeAllocation, departments ...*v1alpha1.Department) (label, text string) {
	if now := effective.Spec(a).Activation; isHeld(now) {
		return activation(now), cmp.Or(heldBy(a, "The team has", "the team's queue"), "By an admin, until an admin resumes it.")
	}
	for _, d := range departments {
		if now := effective.Spec(d.Allocation()).Activation; isHeld(now) {
			return activation(now), HeldBy(a, departments...)
		}
	}
	return "", ""
}

// HeldBy returns sentences about what holds the queue of a team in these departments, the
// nearest first, and until when: a window, the budget or a department; empty if its spec does.
func HeldBy(a *v1alpha1.ComputeAllocation, departments ...*v1alpha1.Department) string {
	if isHeld(effective.Spec(a).Activation) {
		return heldBy(a, "The team has", "the team's queue")
	}
	for _, d := range departments {
		name := d.Name
		if d.Spec.DisplayName != "" {
			name = d.Spec.DisplayName
		}
		if of := d.Allocation(); isHeld(effective.Spec(of).Activation) {
			return cmp.Or(heldBy(of, "Department "+name+" has", "the queues of department "+name), "Department "+name+" is held: no task of its teams is admitted until an admin resumes it.")
		}
	}
	return ""
}

func isHeld(a v1alpha1.Activation) bool { return a == v1alpha1.Hold || a == v1alpha1.Drain }

// heldBy returns sentences about the window or the budget that holds queues, with the words for
// who has the budget, and for the queues.
func heldBy(a *v1alpha1.ComputeAllocation, has, queues string) string {
	in := a.Status.Active
	if in == nil {
		return ""
	}
	if (in.BudgetAction == v1alpha1.BudgetHold || in.BudgetAction == v1alpha1.BudgetDrain) && in.BudgetUntil != nil && a.Spec.Budget != nil {
		return fmt.Sprintf("%s used its budget, so no task is admitted until %s, or until an admin raises the budget.", has, moment(in.BudgetUntil.Time, location(a.Spec.Budget.TimeZone)))
	}
	for i := range a.Spec.Windows {
		if w := &a.Spec.Windows[i]; w.Name == in.Window && isHeld(w.Activation) && in.To != nil {
			return fmt.Sprintf("The window %s holds %s until %s. Tasks start by themselves after that.", w.Name, queues, moment(in.To.Time, location(w.TimeZone)))
		}
	}
	return ""
}
