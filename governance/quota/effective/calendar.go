package effective

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // images have no time zones

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Occurrence is one opening of a window, [From, To).
type Occurrence struct {
	Window   *v1alpha1.Window
	From, To time.Time
}

// horizon is how far ahead windows must not overlap. Time zones repeat within it.
const horizon = 400 * 24 * time.Hour

// Location returns a time zone; UTC for no name.
func Location(name string) (*time.Location, error) {
	if name == "Local" { // that of this machine
		return nil, fmt.Errorf("unknown time zone Local")
	}
	return time.LoadLocation(name)
}

// clock is a time on a wall clock: the date in UTC that reads the same.
type clock = time.Time

// instant returns when the wall clock of a place first shows a time or a later one. So a
// time that is skipped is the first one after it, and one that is repeated the first.
func instant(wall clock, place *time.Location) time.Time {
	at := wall.Add(-36 * time.Hour).In(place) // no offset is larger
	for {
		_, offset := at.Zone()
		_, until := at.ZoneBounds()
		found := wall.Add(-time.Duration(offset) * time.Second)
		if until.IsZero() || found.Before(until) {
			return governance.Later(found, at).UTC()
		}
		at = until.In(place)
	}
}

// calendar is a window with its times parsed.
type calendar struct {
	window   *v1alpha1.Window
	place    *time.Location
	from, to clock // without days
	days     [7]bool
	begin    time.Duration // since midnight
	length   time.Duration // on the wall clock
}

const (
	dayLayout  = "15:04"
	onceLayout = "2006-01-02T15:04"
)

// parse returns the calendar of a window and everything that is wrong, by field.
func parse(w *v1alpha1.Window) (c calendar, wrong governance.FieldErrors) {
	c.window = w
	var err error
	if c.place, err = Location(w.TimeZone); err != nil {
		wrong.Add("timeZone", "is no time zone; use a name such as Europe/Berlin")
	}
	layout, example := onceLayout, "2026-12-01T08:00"
	if len(w.Days) > 0 {
		layout, example = dayLayout, "22:00"
	}
	var fromErr, toErr error
	if c.from, fromErr = time.Parse(layout, w.From); fromErr != nil {
		wrong.Add("from", "use a time such as "+example)
	}
	if c.to, toErr = time.Parse(layout, w.To); toErr != nil {
		wrong.Add("to", "use a time such as "+example)
	}
	if len(w.Days) == 0 {
		if fromErr == nil && toErr == nil && !c.from.Before(c.to) {
			wrong.Add("to", "the end is not after the beginning")
		}
		return c, wrong
	}
	c.begin, c.length = c.from.Sub(c.from.Truncate(24*time.Hour)), c.to.Sub(c.from)
	if c.length <= 0 {
		c.length += 24 * time.Hour
	}
	for _, day := range w.Days {
		i := slices.Index(v1alpha1.Weekdays, day)
		if i < 0 {
			wrong.Add("days", "use days such as Monday")
			break
		}
		c.days[i] = true
	}
	return c, wrong
}

// between returns the openings that are not over at from and begin before to, in order.
func (c *calendar) between(from, to time.Time) (all []Occurrence) {
	add := func(begin, end clock) {
		o := Occurrence{c.window, instant(begin, c.place), instant(end, c.place)}
		if o.From.Before(o.To) && o.To.After(from) && o.From.Before(to) {
			all = append(all, o)
		}
	}
	if len(c.window.Days) == 0 {
		add(c.from, c.to)
		return all
	}
	// Two days before, because a window lasts up to a day and clocks differ by more than one.
	year, month, date := from.In(c.place).Date()
	for day := time.Date(year, month, date-2, 0, 0, 0, 0, time.UTC); ; day = day.AddDate(0, 0, 1) {
		if day.Add(-36 * time.Hour).After(to) {
			return all
		}
		if c.days[day.Weekday()] {
			add(day.Add(c.begin), day.Add(c.begin+c.length))
		}
	}
}

// Between returns the openings of all windows that are not over at from and begin before
// to, in their order. Windows with errors are left out.
func Between(windows []v1alpha1.Window, from, to time.Time) (all []Occurrence) {
	for i := range windows {
		if c, wrong := parse(&windows[i]); len(wrong) == 0 {
			all = append(all, c.between(from, to)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Occurrence) int { return a.From.Compare(b.From) })
	return all
}

// Problems returns the errors of windows and the budget that the schema does not find:
// times and time zones that do not exist, and windows that overlap in the year after now.
func Problems(spec *v1alpha1.ComputeAllocationSpec, now time.Time) (wrong governance.FieldErrors) {
	for i := range spec.Windows {
		_, problems := parse(&spec.Windows[i])
		for _, p := range problems {
			wrong.Add(fmt.Sprintf("spec.windows[%d].%s", i, p.Path), p.Message)
		}
	}
	if b := spec.Budget; b != nil {
		if _, err := Location(b.TimeZone); err != nil {
			wrong.Add("spec.budget.timeZone", "is no time zone; use a name such as Europe/Berlin")
		}
		wrong.Add("spec.budget.steps", overtaken(b.Steps))
	}
	if len(wrong) > 0 {
		return wrong
	}
	return overlaps(spec.Windows, now)
}

// overtaken returns what is wrong with the order of steps: a stricter action comes later.
func overtaken(steps []v1alpha1.BudgetStep) string {
	for _, a := range steps {
		for _, b := range steps {
			if strictness(a.Action) < strictness(b.Action) && a.Percent > b.Percent {
				return fmt.Sprintf("%s at %d %% comes after %s at %d %%; the stricter action comes last", a.Action, a.Percent, b.Action, b.Percent)
			}
		}
	}
	return ""
}

func strictness(a v1alpha1.BudgetAction) int { return slices.Index(v1alpha1.BudgetActions, a) }

// overlaps returns an error for each window that begins while another is open, with the first
// time in its own zone.
func overlaps(windows []v1alpha1.Window, now time.Time) (wrong governance.FieldErrors) {
	if len(windows) < 2 {
		return nil
	}
	var last Occurrence // the one that ends last
	found := map[string]bool{}
	ends := now.Add(horizon)
	for i := range windows { // once, later than that
		if c, wrong := parse(&windows[i]); len(wrong) == 0 && len(windows[i].Days) == 0 && instant(c.to, c.place).After(ends) {
			ends = instant(c.to, c.place)
		}
	}
	ends = governance.Earlier(ends, now.Add(10*horizon))
	for _, o := range Between(windows, now, ends) {
		if last.Window != nil && o.From.Before(last.To) && o.Window != last.Window && !found[o.Window.Name] {
			found[o.Window.Name] = true
			place, _ := Location(o.Window.TimeZone)
			index := slices.IndexFunc(windows, func(w v1alpha1.Window) bool { return w.Name == o.Window.Name })
			wrong.Addf(fmt.Sprintf("spec.windows[%d].from", index), "overlaps the window %s on %s", last.Window.Name, o.From.In(place).Format("2 Jan 2006 15:04"))
		}
		if o.To.After(last.To) {
			last = o
		}
	}
	return wrong
}
