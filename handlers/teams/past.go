package teams

import (
	"context"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
)

// teamPastSize is the number of past tasks on a page of a team.
const teamPastSize = 20

// teamPast returns the usage of a team over a range, and its finished tasks.
func (h *Pages) teamPast(ctx context.Context, scope access.Scope, team string, over timerange.Range, page int) teamviews.TeamPast {
	kept := url.Values{}
	over.SetValues(kept)
	p := teamviews.TeamPast{
		Words:  over.Words,
		Picker: over.Picker("team-range", urls.Team(team), nil), CSVURL: urls.With(urls.Team(team)+"/usage.csv", kept), AllURL: urls.With(urls.PastTasks, nil, "team", team),
	}
	p.Charts, p.Trouble = h.teamCharts(ctx, scope, team, over)
	found, more, err := taskpages.PastTasks(ctx, h.History, scope, history.Query{Teams: []string{team}}, page, teamPastSize)
	if err != nil {
		p.TasksTrouble = taskpages.HistoryUnavailable(err)
		return p
	}
	for _, t := range found {
		p.Tasks = append(p.Tasks, taskpages.PastRow(t))
	}
	p.Pager = listing.Pager(page, teamPastSize, len(found), more, func(n string) string { return urls.With(urls.Team(team), kept, "page", n) + "#team-past" })
	return p
}

// flavorResourcesOf returns the resources that a team has quota of or uses, accelerators
// first.
func flavorResourcesOf(s *capacity.Snapshot, team string) (list []quota.FlavorResource) {
	for i := range s.Teams {
		if s.Teams[i].Name != team {
			continue
		}
		for _, c := range s.Teams[i].Resources {
			if c.Resource != catalog.Network {
				list = append(list, quota.FlavorResource{Flavor: c.Flavor, Resource: c.Resource})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b quota.FlavorResource) int { return quota.Compare(a.Resource, b.Resource) })
	return list
}

// teamMeasures are the measures in the charts of a team.
var teamMeasures = []history.Measure{history.Quota, history.Used, history.Borrowed, history.Growth}

func teamSeries(team string, list []quota.FlavorResource) (keys []history.SeriesKey) {
	for _, fr := range list {
		for _, m := range teamMeasures {
			keys = append(keys, history.SeriesKey{Team: team, Pool: fr.Flavor, Resource: fr.Resource, Measure: m})
		}
	}
	return keys
}

// teamCharts returns a chart for each resource of the team, summed over pools: its
// quota, and its own and borrowed usage.
func (h *Pages) teamCharts(ctx context.Context, scope access.Scope, team string, over timerange.Range) (list []views.Chart, trouble string) {
	snapshot, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return nil, console.SectionTrouble("Usage over time", err)
	}
	covered := flavorResourcesOf(snapshot, team)
	if len(covered) == 0 {
		return nil, "The team has no quota and uses none."
	}
	series, err := h.History.Series(ctx, teamSeries(team, covered), over.From, over.To, over.Buckets)
	if err != nil {
		return nil, taskpages.HistoryUnavailable(err)
	}
	gaps, err := h.History.Gaps(ctx, over.From, over.To)
	if err != nil {
		return nil, taskpages.HistoryUnavailable(err)
	}
	for len(covered) > 0 {
		resource := covered[0].Resource
		var quotas, used, borrowed, growth [][]history.Point
		for len(covered) > 0 && covered[0].Resource == resource {
			of := func(m history.Measure) []history.Point {
				return series[history.SeriesKey{Team: team, Pool: covered[0].Flavor, Resource: resource, Measure: m}]
			}
			quotas, used, borrowed = append(quotas, of(history.Quota)), append(used, of(history.Used)), append(borrowed, of(history.Borrowed))
			growth = append(growth, of(history.Growth))
			covered = covered[1:]
		}
		list = append(list, teamChart(resource, over, charts.SumPoints(quotas...), charts.SumPoints(used...), charts.SumPoints(borrowed...), charts.SumPoints(growth...), gaps))
	}
	return list, ""
}

func teamChart(resource string, over timerange.Range, quotas, used, borrowed, growth []history.Point, gaps []history.Gap) views.Chart {
	chart := views.Chart{ID: "chart-" + htmlID(resource), Title: format.ResourceLabel(resource), Note: over.Words + ", all pools", Stacked: true, Times: charts.ChartTimes(used), Gaps: charts.ChartGaps(gaps)}
	if !slices.ContainsFunc(used, func(p history.Point) bool { return p.Known }) {
		chart.Empty = "No data for this range."
		return chart
	}
	own := slices.Clone(used)
	for i := range own {
		if i < len(borrowed) && borrowed[i].Known {
			own[i].Value = max(0, own[i].Value-borrowed[i].Value)
		}
	}
	chart.Series = []views.ChartSeries{
		{Label: "Own", Tone: "own", Values: charts.ChartValues(resource, own)},
		{Label: "Borrowed", Tone: "borrowed", Values: charts.ChartValues(resource, borrowed)},
		{Label: "Quota", Tone: "quota", Step: true, Line: true, Values: charts.ChartValues(resource, quotas)},
	}
	if charts.AnyAbove(growth, 0) {
		chart.Series = append(chart.Series, views.ChartSeries{Label: "Growth", Tone: "ok", Line: true, Values: charts.ChartValues(resource, growth)})
	}
	charts.WithoutLimitless(&chart, resource)
	return chart
}

// htmlID converts the name of a resource to a part of an HTML id.
func htmlID(resource string) string {
	id := []byte(resource)
	for i, b := range id {
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') {
			id[i] = '-'
		}
	}
	return string(id)
}

// usageHours returns the hours of quota and usage of a team, one row for each
// resource of each pool.
func (h *Pages) usageHours(ctx context.Context, s *capacity.Snapshot, team string, over timerange.Range) ([][]string, error) {
	list := flavorResourcesOf(s, team)
	to := over.To
	if now := h.Now(); to.After(now) {
		to = now
	}
	totals, err := h.History.Totals(ctx, teamSeries(team, list), over.From, to)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"team", "pool", "resource", "unit", "from", "to", "hours known", "quota hours", "held hours", "own hours", "borrowed hours", "growth hours"}}
	for _, fr := range list {
		total := func(m history.Measure) history.Total {
			t := totals[history.SeriesKey{Team: team, Pool: fr.Flavor, Resource: fr.Resource, Measure: m}]
			if t.Sum == nil {
				t.Sum = new(big.Int)
			}
			return t
		}
		used, borrowed := total(history.Used), total(history.Borrowed)
		own := new(big.Int).Sub(used.Sum, borrowed.Sum)
		rows = append(rows, []string{
			team, fr.Flavor, fr.Resource, format.HourUnit(fr.Resource), format.Time(over.From), format.Time(to), strconv.FormatFloat(used.Known.Hours(), 'f', 3, 64),
			hours(fr.Resource, total(history.Quota).Sum), hours(fr.Resource, used.Sum), hours(fr.Resource, own), hours(fr.Resource, borrowed.Sum), hours(fr.Resource, total(history.Growth).Sum),
		})
	}
	return rows, nil
}

// hours converts an integral of history to hours of the displayed unit, exact to a
// thousandth.
func hours(resource string, sum *big.Int) string {
	per := big.NewRat(int64(charts.HistoryUnit(resource))*time.Hour.Milliseconds(), 1)
	return new(big.Rat).Quo(new(big.Rat).SetInt(sum), per).FloatString(3)
}
