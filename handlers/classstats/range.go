package classstats

import (
	"slices"
	"time"

	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/views"
)

// Range is the range of averages by class: up to now, between two times, or all.
type Range struct {
	name, label string        // in addresses, and on pages
	Within      time.Duration // length of a range up to now; else 0
	past        bool          // needs history: longer than the console remembers
	from, to    time.Time     // a range between two times, which needs history
}

// times returns the begin and end of a range, not earlier than began.
func (r Range) times(began, now time.Time) (from, to time.Time) {
	from, to = r.from, r.to
	if r.Within > 0 {
		from = now.Add(-r.Within)
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	return slices.MaxFunc([]time.Time{began, from}, time.Time.Compare), to
}

func (r Range) Key() string {
	return r.name + " " + r.from.Format(time.RFC3339) + " " + r.to.Format(time.RFC3339)
}

var ranges = []Range{
	{label: "All"},
	{name: "1h", label: "1 h", Within: time.Hour}, {name: "12h", label: "12 h", Within: 12 * time.Hour}, {name: "24h", label: "24 h", Within: 24 * time.Hour},
	{name: "7d", label: "7 d", Within: 7 * timerange.Day, past: true}, {name: "30d", label: "30 d", Within: 30 * timerange.Day, past: true}, {name: "1y", label: "1 year", Within: 365 * timerange.Day, past: true},
}

// RangeNamed returns the range called name, or the range of all if none is.
func RangeNamed(name string, past bool) Range {
	for _, r := range ranges {
		if r.name == name && (past || !r.past) {
			return r
		}
	}
	return ranges[0]
}

// RangeLinks links to the same page over other ranges.
func RangeLinks(current Range, past bool, address func(name string) string) (links []views.RangeLink) {
	for _, r := range ranges {
		if r.past && !past {
			continue
		}
		link := views.RangeLink{Label: r.label, Title: "The last " + r.label, URL: address(r.name), Current: r == current}
		switch {
		case r.Within == 0 && past:
			link.Title = "All recorded history"
		case r.Within == 0:
			link.Title = "Since the console started"
		}
		links = append(links, link)
	}
	return links
}

// RangeOf converts the range of a page.
func RangeOf(r timerange.Range) Range {
	if r.Name != "" {
		return RangeNamed(r.Name, true)
	}
	return Range{name: "own", from: r.From, to: r.To}
}
