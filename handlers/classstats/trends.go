package classstats

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/views"
	dashboardviews "kuota.dev/kuota/views/dashboard"
)

// trendLines is how many groups the charts of trends have at most.
const trendLines = 6

// trendCharts are the charts of trends. value returns the value of an interval, in
// seconds for waits; false if nothing ended in it.
var trendCharts = []struct {
	id, title string
	wait      bool
	value     func(history.Trend) (float64, bool)
}{
	{"trend-wait", "Median wait", true, func(t history.Trend) (float64, bool) { return t.Median.Seconds(), t.Waits > 0 }},
	{"trend-wait-p90", "90th percentile wait", true, func(t history.Trend) (float64, bool) { return t.P90.Seconds(), t.Waits > 0 }},
	{"trend-failures", "Failures", false, func(t history.Trend) (float64, bool) { return float64(t.Failures), true }},
	{"trend-preemptions", "Preemptions", false, func(t history.Trend) (float64, bool) { return float64(t.Preemptions), true }},
}

// trendTones distinguish the lines of a chart, with their dashes.
var trendTones = []string{"accent", "wait", "own", "bad", "ok", "pre"}

// Trends returns the charts of waits, failures and preemptions over a range, within a
// scope. there are the teams of the scope that exist. path is the address of the page,
// and values its query: by=team groups by team instead of by priority class.
func (h *Stats) Trends(ctx context.Context, scope access.Scope, there []string, r timerange.Range, values url.Values, address func(by string) string) dashboardviews.Trends {
	by := history.ByClass
	if values.Get("by") == string(history.ByTeam) {
		by = history.ByTeam
	}
	v := dashboardviews.Trends{Note: r.Words, Links: []views.RangeLink{
		{Label: "By class", Title: "By class", URL: address(""), Current: by == history.ByClass},
		{Label: "By team", Title: "By team", URL: address(string(history.ByTeam)), Current: by == history.ByTeam},
	}}
	if h.History == nil {
		v.Empty = "History is off. An operator can enable it with --history."
		return v
	}
	past, err := h.readTrends(ctx, by, VisibleTeams(scope, there, nil), r)
	if err != nil {
		v.Empty = console.SectionTrouble("History", err)
		return v
	}
	names := busiest(past.groups)
	if len(names) == 0 {
		v.Empty = "No task ended a wait, failed or was preempted, " + r.Words + "."
		return v
	}
	if len(names) > trendLines {
		v.More = fmt.Sprintf("The charts show the %d of %s with the most waits, failures and preemptions.", trendLines, format.Count(len(names), map[history.TrendKey]string{history.ByClass: "class", history.ByTeam: "team"}[by]))
		names = names[:trendLines]
	}
	v.Note = format.JoinedBy(", ", past.count(), r.Words)
	for _, of := range trendCharts {
		v.Charts = append(v.Charts, past.chart(of.id, of.title, of.wait, of.value, by, names, r))
	}
	return v
}

// count returns how many tasks failed and were preempted.
func (p pastTrends) count() string {
	failures, preemptions := 0, 0
	for _, trends := range p.groups {
		for _, t := range trends {
			failures, preemptions = failures+int(t.Failures), preemptions+int(t.Preemptions)
		}
	}
	return format.Count(failures, "failure") + ", " + format.Count(preemptions, "preemption")
}

// busiest returns the groups, those with the most waits, failures and preemptions first.
func busiest(groups map[string][]history.Trend) []string {
	total := map[string]int64{}
	for name, trends := range groups {
		for _, t := range trends {
			total[name] += t.Waits + t.Failures + t.Preemptions
		}
	}
	return slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b))
	})
}

// pastTrends are the trends of history over a range, and where nothing is known.
type pastTrends struct {
	groups map[string][]history.Trend
	gaps   []history.Gap
	now    time.Time
}

// observed reports whether any of an interval was observed.
func (p pastTrends) observed(from, to time.Time) bool {
	return from.Before(p.now) && !slices.ContainsFunc(p.gaps, func(g history.Gap) bool { return !g.From.After(from) && !g.To.Before(to) })
}

func (p pastTrends) chart(id, title string, wait bool, value func(history.Trend) (float64, bool), by history.TrendKey, names []string, r timerange.Range) views.Chart {
	c := views.Chart{ID: id, Title: title, Gaps: charts.ChartGaps(p.gaps)}
	length := r.To.Sub(r.From) / time.Duration(r.Buckets)
	for i := range r.Buckets {
		c.Times = append(c.Times, r.From.Add(time.Duration(i)*length).Unix())
	}
	unit := 1.0
	if wait {
		c.Unit, unit = waitUnit(p.groups, names, value)
		c.Title += ", " + c.Unit
	}
	for i, name := range names {
		s := views.ChartSeries{Label: groupName(by, name), Tone: trendTones[i%len(trendTones)], Step: !wait, Values: make([]views.ChartValue, r.Buckets)}
		for j, t := range p.groups[name] {
			n, known := value(t)
			from := r.From.Add(time.Duration(j) * length)
			if !known || n == 0 && !p.observed(from, from.Add(length)) {
				continue
			}
			s.Values[j] = views.ChartValue{Value: n / unit, Known: true, Text: format.Thousands(int64(n))}
			if wait {
				s.Values[j].Text = format.Duration(time.Duration(n * float64(time.Second)))
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// waitUnit returns the unit of a chart of waits, and its length in seconds.
func waitUnit(groups map[string][]history.Trend, names []string, value func(history.Trend) (float64, bool)) (string, float64) {
	most := 0.0
	for _, name := range names {
		for _, t := range groups[name] {
			n, _ := value(t)
			most = max(most, n)
		}
	}
	switch {
	case most >= 3*3600:
		return "hours", 3600
	case most >= 3*60:
		return "minutes", 60
	}
	return "seconds", 1
}

func groupName(by history.TrendKey, name string) string {
	switch {
	case by == history.ByTeam && name == "":
		return "No team"
	case by == history.ByTeam:
		return name
	case name == "":
		return "No priority class"
	}
	return format.ClassName(name)
}

// readTrends returns the trends of these teams, or, for nil, of all, from the cache or
// from history.
func (h *Stats) readTrends(ctx context.Context, by history.TrendKey, teams []string, r timerange.Range) (found pastTrends, err error) {
	key := fmt.Sprint("trends ", by, " ", r.From.Unix(), " ", r.To.Unix(), " ", teams == nil, "\n", strings.Join(teams, "\n"))
	if cached, ok := h.sums.Get(key); ok {
		return cached.(pastTrends), nil
	}
	asked := time.Now()
	found.now = h.Now()
	if found.groups, err = h.History.Trends(ctx, by, teams, r.From, r.To, r.Buckets); err != nil {
		return found, err
	}
	if found.gaps, err = charts.Gaps(ctx, h.History, r.From, r.To); err != nil {
		return found, err
	}
	h.sums.Set(key, found, max(r.RefreshInterval(), 20*time.Since(asked)))
	return found, nil
}

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
