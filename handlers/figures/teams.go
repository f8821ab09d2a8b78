package figures

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// teamColumns are the columns of the list of teams, in their order.
var teamColumns = []listing.Column[teamFigures]{
	{Head: ui.Head{Label: "Team", ID: "name"}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Team.Name, b.Team.Name) }},
	{Head: ui.Head{Label: "Allocated", ID: "allocated", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Nominal, b.Nominal) }},
	{Head: ui.Head{Label: "Used", ID: "held", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Usage, b.Usage) }},
	{Head: ui.Head{Label: "Borrowed", ID: "borrowed", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Borrowed, b.Borrowed) }},
	{Head: ui.Head{Label: "Lent", ID: "lent", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.LentToCohort, b.LentToCohort) }},
	{Head: ui.Head{Label: "Utilization", ID: "utilization", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.utilization(), b.utilization()) }},
	{Head: ui.Head{Label: "Running", ID: "running", Unit: "tasks", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Running, b.Running) }},
	{Head: ui.Head{Label: "Waiting", ID: "waiting", Unit: "tasks", Number: true}, Compare: func(a, b teamFigures) int { return cmp.Compare(a.Waiting, b.Waiting) }},
}

// teamFigures are the figures of one team, or of several, in one resource of the
// selected pools.
type teamFigures struct {
	Team *capacity.TeamSnapshot
	usage.TeamUsage
	Running, Waiting int
}

func (t *teamFigures) add(o teamFigures) {
	t.TeamUsage.Add(o.TeamUsage)
	t.Running += o.Running
	t.Waiting += o.Waiting
}

// utilization returns usage per quota; without quota, less than any other.
func (t teamFigures) utilization() float64 {
	if t.Nominal <= 0 {
		return -1
	}
	return float64(t.Usage) / float64(t.Nominal)
}

// teamList contains the selected teams in order, and the sum of the others.
type teamList struct {
	Found  []teamFigures
	rest   teamFigures // of teams that are not selected or are hidden, and of queues without a team
	unseen string      // what rest has besides teams that are not selected; empty for nothing
	all    int
}

// TeamLines computes the figures of all teams in one pass.
func (q Query) TeamLines(s *capacity.Snapshot, resource string) teamList {
	list := teamList{all: len(s.Teams)}
	switch {
	case s.Hidden:
		list.unseen = "teams you cannot see, and queues without a team"
	case s.Others != nil:
		list.unseen = noTeam
	}
	text := strings.ToLower(q.text)
	for i := range s.Teams {
		t := &s.Teams[i]
		figures := q.figuresOf(t, resource)
		if q.Tree.Has(q.Department, t.Name) && (text == "" || strings.Contains(t.Name, text) || strings.Contains(strings.ToLower(t.DisplayName), text)) {
			list.Found = append(list.Found, figures)
		} else {
			list.rest.add(figures)
		}
	}
	if s.Others != nil {
		list.rest.add(q.figuresOf(s.Others, resource))
	}
	by, descending := q.order()
	slices.SortFunc(list.Found, listing.Order(teamColumns, by, descending))
	return list
}

func (q Query) figuresOf(t *capacity.TeamSnapshot, resource string) teamFigures {
	f := teamFigures{Team: t, Running: t.Running, Waiting: t.Waiting}
	for i := range t.Resources {
		if c := &t.Resources[i]; c.Resource == resource && (q.Pool == "" || c.Flavor == q.Pool) {
			f.TeamUsage.Add(c.TeamUsage)
		}
	}
	return f
}

// order returns the requested order. The default is by usage, descending, on the
// dashboard, and by name on the list of all teams.
func (q Query) order() (by string, descending bool) {
	switch {
	case q.sort != "":
		return q.sort, q.descending
	case q.Path == urls.Dashboard:
		return "held", true
	}
	return "name", false
}

// TeamTable returns one page of a list of teams. Teams that are not on it are one
// line, so that the lines add up to the sum.
func (q Query) TeamTable(list teamList, resource string, size int) views.TeamTable {
	t := views.TeamTable{ID: "team-list", Note: format.ResourceName(resource) + " " + q.Where(), CSVURL: q.Seen(urls.TeamsCSV, q.textOf("q")...)}
	if resource == catalog.Memory {
		t.Note = "Memory in GiB, " + q.Where()
	}
	if q.text+q.Department != "" {
		t.ClearURL = q.With(q.textName, "", "department", "", q.PageName, "")
	}
	by, descending := q.order()
	for _, column := range teamColumns {
		t.Heads = append(t.Heads, q.Head(column.Head, by, descending, column.Number, ""))
	}
	t.Heads = slices.Insert(t.Heads, 1, ui.Heads("Use")...)
	from, to, page := listing.Bounds(q.Page, size, len(list.Found))
	shown := list.Found[from:to]
	rest := list.rest // added up: a sum that is no limit minus its parts would not be the rest
	for _, figures := range slices.Concat(list.Found[:from], list.Found[to:]) {
		rest.add(figures)
	}
	most := 0.0
	for _, figures := range shown {
		most = max(most, charts.BarMax(resource, figures.Nominal, figures.Usage))
	}
	sum := rest
	for _, figures := range shown {
		line := q.teamLine(figures, resource)
		line.ID, line.Name, line.URL = "team-"+figures.Team.Name, figures.Team.Name, TeamURL(figures.Team)
		if name := figures.Team.DisplayName; name != "" && !strings.EqualFold(name, figures.Team.Name) {
			line.Sub = name
		}
		line.Held = HeldStatus(figures.Team)
		line.Meter = ui.MeterProps{
			Label: figures.Team.Name + ": " + line.Used + " of " + line.Allocated, Max: most, Mark: float64(figures.Nominal),
			Parts: []ui.MeterPart{{Use: "own", Value: float64(figures.Own)}, {Use: "borrowed", Value: float64(figures.Borrowed)}, {Use: "idle", Value: float64(max(0, figures.Nominal.Minus(figures.Usage)))}},
		}
		for _, sentence := range figures.Team.Overrides {
			what, _, _ := strings.Cut(sentence, ": ")
			line.Sub = strings.TrimPrefix(line.Sub+" · "+what, " · ")
		}
		t.Rows = append(t.Rows, line)
		sum.add(figures)
	}
	if others := list.all - len(shown); others > 0 || list.unseen != "" {
		line := q.teamLine(rest, resource)
		line.ID = "teams-other"
		line.Name, line.Sub = othersWords(others, list.unseen)
		t.Other = &line
	}
	t.Sum = q.teamLine(sum, resource)
	t.Sum.ID, t.Sum.Name = "teams-sum", "All"
	t.Pager = q.Pager(page, from, to, len(list.Found))
	return t
}

// HeldStatus returns the status of a team whose queue admits no tasks, with its cause and
// its end; without a label for other teams.
func HeldStatus(t *capacity.TeamSnapshot) views.Status {
	if t.Held == "" {
		return views.Status{}
	}
	return views.Status{Tone: "idle", Label: t.Held, Text: t.HeldText}
}

// noTeam is the usage of ClusterQueues that no allocation describes.
const noTeam = "queues without a team"

// othersWords names the line of what is not listed by team, and describes it.
func othersWords(others int, unseen string) (name, sub string) {
	name = "Other teams"
	switch {
	case others == 0 && unseen == noTeam:
		return "Queues without a team", ""
	case others == 0:
		return name, unseen
	}
	return name, format.JoinedBy(", ", format.Thousands(int64(others))+" not on this page", unseen)
}

func (q Query) textOf(name string) []string { return []string{name, q.text} }

func (q Query) teamLine(f teamFigures, resource string) views.TeamLine {
	line := views.TeamLine{
		Allocated: quota.Short(resource, f.Nominal), Used: quota.Short(resource, f.Usage), Borrowed: quota.Short(resource, f.Borrowed), Lent: quota.Short(resource, f.LentToCohort),
		Utilization: format.Percent(f.Usage, f.Nominal),
		Running:     views.Count{Text: format.Thousands(int64(f.Running))}, Waiting: views.Count{Text: format.Thousands(int64(f.Waiting))},
	}
	if f.Team != nil {
		line.Borrowing = f.Nominal > 0 && f.Usage > f.Nominal
		tasksOf := func(states ...tasks.State) string {
			values := url.Values{"team": {f.Team.Name}}
			for _, state := range states {
				values.Add("status", string(state))
			}
			return urls.With(urls.Tasks, values)
		}
		if f.Running > 0 {
			line.Running.URL = tasksOf(tasks.Running, tasks.Starting, tasks.Stopping)
		}
		if f.Waiting > 0 {
			line.Waiting.URL = tasksOf(tasks.Pending, tasks.Preempted)
		}
	}
	return line
}

// TeamURL returns the page of a team: that of its allocation, which says why, while it has
// no namespace.
func TeamURL(t *capacity.TeamSnapshot) string {
	if t.Namespace == "" {
		return urls.Allocation(t.Name)
	}
	return urls.Team(t.Name)
}
