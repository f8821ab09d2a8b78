package classstats

import (
	"slices"
	"time"

	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/views"
)

// Range is a time that averages by class are over: the last while, a time
// of one's own, or all that is known.
type Range struct {
	name, label string        // as addresses have it, and as pages do
	Within      time.Duration // 0 for no such while
	past        bool          // longer than the console itself remembers: only with history
	from, to    time.Time     // of one's own, which only history has
}

// times are when a range begins and ends, where history began at some time.
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

// RangeNamed is the range of a name; all that is known for one that there is not.
func RangeNamed(name string, past bool) Range {
	for _, r := range ranges {
		if r.name == name && (past || !r.past) {
			return r
		}
	}
	return ranges[0]
}

// RangeLinks lead to the same page over another time.
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

// RangeOf is the same range for the table by priority class.
func RangeOf(r timerange.Range) Range {
	if r.Name != "" {
		return RangeNamed(r.Name, true)
	}
	return Range{name: "own", from: r.From, to: r.To}
}
