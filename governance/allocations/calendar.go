package allocations

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
)

const (
	calendarLength = 14 * 24 * time.Hour
	calendarLines  = 60
)

// CalendarLine is a time at which a window of the team begins or ends, or at which windows
// change how much more is allocated in the team's pools than they have.
type CalendarLine struct {
	At     time.Time
	Begins *v1alpha1.Window // of this team; nil for none
	Ends   *v1alpha1.Window
	Over   []quota.Excess // from then on
}

// resolvedWindows has the quota of an allocation by window, empty for none.
type resolvedWindows struct {
	*v1alpha1.ComputeAllocation
	types catalog.Catalog
	known map[string]quota.Resolved
}

func (r *resolvedWindows) in(window string) quota.Resolved {
	found, ok := r.known[window]
	if !ok {
		spec := effective.InWindow(&r.Spec, window)
		found, _ = quota.Resolve(&spec, r.types)
		r.known[window] = found
	}
	return found
}

// opening is the beginning or the end of a window of an allocation.
type opening struct {
	at     time.Time
	begins bool
	window *v1alpha1.Window
	of     *resolvedWindows
}

// calendar returns the next two weeks of a team whose allocation is saved among all, if any
// team has a window in them. It reports false if there are more lines than it returns.
func calendar(all []v1alpha1.ComputeAllocation, saved *v1alpha1.ComputeAllocation, types catalog.Catalog, now time.Time) (lines []CalendarLine, complete bool) {
	if len(saved.Spec.Windows) == 0 {
		return nil, true
	}
	var openings []opening
	allocated := quota.PoolResources{}
	add := func(a *v1alpha1.ComputeAllocation) {
		r := &resolvedWindows{ComputeAllocation: a, types: types, known: map[string]quota.Resolved{}}
		open := ""
		for _, o := range effective.Between(a.Spec.Windows, now, now.Add(calendarLength)) {
			if o.From.After(now) {
				openings = append(openings, opening{o.From, true, o.Window, r})
			} else {
				open = o.Window.Name
			}
			openings = append(openings, opening{o.To, false, o.Window, r})
		}
		allocated.AddNominal(r.in(open))
	}
	for i := range all {
		if all[i].Name != saved.Name && !all[i].Spec.Observed() {
			add(&all[i])
		}
	}
	add(saved)
	var pools []quota.FlavorQuotas
	for _, window := range append([]string{""}, windowNames(saved.Spec.Windows)...) {
		in := resolvedWindows{saved, types, map[string]quota.Resolved{}}
		for _, p := range in.in(window).Pools {
			if !slices.ContainsFunc(pools, func(q quota.FlavorQuotas) bool { return q.Name == p.Name }) {
				pools = append(pools, p)
			}
		}
	}
	// What ends comes first, so that a window that follows another one replaces it.
	slices.SortStableFunc(openings, func(a, b opening) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		switch {
		case a.begins == b.begins:
			return 0
		case a.begins:
			return 1
		}
		return -1
	})
	before := allocated.Exceeding(pools, types)
	for i := 0; i < len(openings); {
		line := CalendarLine{At: openings[i].at}
		for ; i < len(openings) && openings[i].at.Equal(line.At); i++ {
			o := openings[i]
			from, to := o.of.in(""), o.of.in(o.window.Name)
			if !o.begins {
				from, to = to, from
			}
			allocated.AddNominal(to)
			allocated.SubtractNominal(from)
			switch {
			case o.of.ComputeAllocation != saved:
			case o.begins:
				line.Begins = o.window
			default:
				line.Ends = o.window
			}
		}
		line.Over = allocated.Exceeding(pools, types)
		if line.Begins != nil || line.Ends != nil || !slices.Equal(line.Over, before) {
			lines = append(lines, line)
		}
		before = line.Over
	}
	if len(lines) > calendarLines {
		return lines[:calendarLines], false
	}
	return lines, true
}

func windowNames(windows []v1alpha1.Window) (all []string) {
	for _, w := range windows {
		all = append(all, w.Name)
	}
	return all
}
