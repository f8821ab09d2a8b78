package usage

import (
	"cmp"
	"net/url"
	"slices"
	"time"
	_ "time/tzdata" // images have no time zones

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// maxDays bounds the range of a report.
const maxDays = 400

// departmentRows is the value of rows= for departments.
const departmentRows = "department"

// query is the query in the address of a report.
type query struct {
	listing.Address
	team, pool, resource string
	by                   accounting.Granularity
	rows                 history.UsageKey // empty for teams and departments
	byDepartment         bool             // whether teams are summed up by department
	zone, department     string
	from, to             time.Time      // to is the day after the last
	daysWrong, zoneWrong string         // sentences; empty for none
	choices              []views.Filter // of rows and periods
}

// parse reads an address. Rows of departments are a choice where the reader sees any.
func parse(values url.Values, now time.Time, departments bool) query {
	q := query{Address: listing.NewAddress(urls.Usage, "")}
	one := func(name string) string { return q.Take(values, name) }
	q.team, q.pool, q.resource, q.zone = one("team"), one("pool"), one("resource"), one("zone")
	q.department = one("department")
	rows, by := listing.NewFilter("rows", "Rows", "Teams", one("rows")), listing.NewFilter("by", "Periods", "", one("by"))
	if departments {
		rows.Add(departmentRows, "Departments")
	}
	for _, k := range rowKeys {
		rows.Add(string(k.key), k.plural)
	}
	by.Add(string(accounting.Day), "Days")
	by.Add(string(accounting.Week), "Weeks")
	by.Add(string(accounting.Month), "Months")
	if q.byDepartment = rows.Chosen() == departmentRows; !q.byDepartment {
		q.rows = history.UsageKey(rows.Chosen())
	}
	q.by = cmp.Or(accounting.Granularity(by.Chosen()), accounting.Day)
	q.choices = []views.Filter{rows.Done(), by.Done()}
	if q.zone == "" {
		q.zone = "UTC"
	}
	zone, err := time.LoadLocation(q.zone)
	if err != nil || q.zone == "Local" {
		zone, q.zoneWrong = time.UTC, "There is no such time zone. Write it as UTC or Europe/Berlin."
	}
	now = now.In(zone)
	dayOf := func(name string, usual time.Time) time.Time {
		text := one(name)
		if text == "" {
			return usual
		}
		day, err := time.ParseInLocation(time.DateOnly, text, zone)
		if err != nil || day.Year() < 2000 || day.Year() > 9000 {
			q.daysWrong = "Write days from 2000 on as YYYY-MM-DD."
		}
		return day
	}
	last := dayOf("to", accounting.Day.Begin(now))
	q.from = dayOf("from", accounting.Month.Begin(last))
	q.to = accounting.Day.Next(last)
	switch {
	case q.daysWrong != "":
	case !q.from.Before(q.to):
		q.daysWrong = "The first day is after the last."
	case q.from.After(now):
		q.daysWrong = "The first day is in the future."
	case q.to.Sub(q.from) > (maxDays+1)*24*time.Hour:
		q.daysWrong = "Choose at most 400 days."
	}
	return q
}

// problem returns the first sentence about an invalid value; empty for none.
func (q query) problem() string {
	if q.zoneWrong != "" {
		return q.zoneWrong
	}
	return q.daysWrong
}

// days is the number of days of the report.
func (q query) days() int { return int(q.to.Sub(q.from).Round(24*time.Hour) / (24 * time.Hour)) }

func (q query) bounds() []time.Time { return q.by.Bounds(q.from, q.to) }

// links are the usual ranges, of the same resource: that which is usual depends on the range.
func (q query) links(now time.Time) (links []views.RangeLink) {
	now = now.In(q.from.Location())
	month := accounting.Month.Begin(now)
	before := accounting.Month.Begin(month.AddDate(0, 0, -1))
	for _, r := range []struct {
		label    string
		from, to time.Time // to is the last day
	}{{"This month", month, accounting.Day.Begin(now)}, {"Last month", before, month.AddDate(0, 0, -1)}, {"This week", accounting.Week.Begin(now), accounting.Day.Begin(now)}} {
		links = append(links, views.RangeLink{
			Label: r.label, Title: r.label, Current: q.from.Equal(r.from) && q.to.Equal(accounting.Day.Next(r.to)),
			URL: q.With("from", r.from.Format(time.DateOnly), "to", r.to.Format(time.DateOnly), "resource", q.resource),
		})
	}
	return links
}

func (q query) filters(teams, pools, resources []string, resource string) []views.Filter {
	team := q.Filter("team", "Team", "All teams", slices.Sorted(slices.Values(teams))...)
	return append(slices.Clone(q.choices), team, q.Filter("pool", "Pool", "All pools", pools...), q.resourceFilter(resources, resource))
}

// visible returns the query of what a reader sees; asked are the teams that the filters select,
// nil for all.
func (q query) visible(scope access.Scope, teams, asked []string) accounting.Query {
	return accounting.Query{Teams: classstats.VisibleTeams(scope, teams, asked), Pool: q.pool, Resource: q.resource}
}
