package tasks

import (
	"net/url"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

func (q taskQuery) ranges(past bool) []views.RangeLink {
	return classstats.RangeLinks(q.classRange, past, func(name string) string { return q.With("range", name) })
}

// deletedTask is the value of ?deleted= after a deletion. It does not name the task,
// because an address can be forged.
const deletedTask = "task"

// taskQuery is the query in the address of a list of tasks.
type taskQuery struct {
	listing.Address
	index.Query
	teams      []string
	department string // of the teams; empty for all
	classRange classstats.Range
	hidden     map[string]bool // columns, by their ids
}

// renamedStates maps states in addresses of earlier releases to their current names.
var renamedStates = map[string]tasks.State{"Pre-empted": tasks.Preempted, "Paused": tasks.Stopped}

// taskQuery parses an address; history decides which ranges exist.
func (h *Pages) taskQuery(values url.Values) taskQuery {
	q := taskQuery{Address: listing.NewAddress(urls.Tasks, "page")}
	keep := func(name string) []string { return q.TakeAll(values, name) }
	one := func(name string) string {
		if kept := keep(name); len(kept) > 0 {
			return kept[0]
		}
		return ""
	}
	q.teams, q.Kinds, q.Pools, q.SubmittedBy, q.Text = keep("team"), keep("kind"), keep("pool"), one("by"), one("q")
	q.department = one("department")
	q.PriorityClasses = classstats.Classes(keep("class"))
	for i, state := range keep("status") {
		if renamed, ok := renamedStates[state]; ok {
			state = string(renamed)
			q.Values["status"][i] = state
		}
		q.States = append(q.States, tasks.State(state))
	}
	q.Phase = index.Phase(one("tab"))
	q.tab(len(q.States) > 0)
	// The default order is newest first.
	q.Sort, q.Descending = index.Column(one("sort")), one("order") == "desc"
	if q.Sort == "" {
		q.Sort, q.Descending = index.BySubmitted, one("order") != "asc"
	}
	q.Page, _ = strconv.Atoi(one("page"))
	if q.classRange = classstats.RangeNamed(one("range"), h.History != nil); q.classRange.Within == 0 {
		delete(q.Values, "range")
	}
	q.Within = q.classRange.Within
	q.hide(values)
	return q
}

// tab sets the tab of a list. Requested states decide; if they belong to both tabs,
// the list is in none and shows both.
func (q *taskQuery) tab(byState bool) {
	if q.Phase != index.Finished {
		q.Phase = index.Active
	}
	if byState {
		switch q.Phase = ""; {
		case !slices.ContainsFunc(q.States, tasks.State.Finished):
			q.Phase = index.Active
		case !slices.ContainsFunc(q.States, func(state tasks.State) bool { return !state.Finished() }):
			q.Phase = index.Finished
		}
	}
	if delete(q.Values, "tab"); q.Phase == index.Finished && !byState {
		q.Values.Set("tab", string(index.Finished))
	}
}

// tabs links to the active and the finished tasks with the same filters, except for
// states.
func (q taskQuery) tabs(l queries.List) []views.Tab {
	return []views.Tab{
		{Label: "Active", Count: format.Thousands(int64(l.Phases[index.Active])), URL: q.With("tab", "", "status", "", "page", ""), Current: q.Phase == index.Active},
		{Label: "Queue", URL: urls.Queue},
		{Label: "Finished", Count: format.Thousands(int64(l.Phases[index.Finished])), URL: q.With("tab", string(index.Finished), "status", "", "page", ""), Current: q.Phase == index.Finished},
	}
}

// heads returns the shown columns, each with the address that sorts by it.
func (q taskQuery) heads() (shown []ui.Head) {
	for _, column := range taskColumns {
		if !q.hidden[column.ID] {
			// The first click on figures and times sorts them descending.
			descendingFirst := column.Number || column.ID == string(index.BySubmitted) || column.ID == string(index.ByPriorityClass)
			shown = append(shown, q.Head(column.Head, string(q.Sort), q.Descending, descendingFirst, "asc"))
		}
	}
	return shown
}

// filters returns the filters of a list with the current choice.
func (q taskQuery) filters(l queries.List) []views.Filter {
	var states []string
	for _, state := range tasks.States {
		if l.States[state] > 0 || slices.Contains(q.States, state) {
			states = append(states, string(state))
		}
	}
	return []views.Filter{
		q.Filter("team", "Team", "All teams", l.Teams...),
		classstats.Filter(q.Values.Get("class"), l.PriorityClasses),
		q.Filter("status", "Status", "All statuses", states...),
		q.Filter("kind", "Kind", "All kinds", l.Kinds...),
		q.Filter("pool", "Pool", "All pools", l.Pools...),
		q.Filter("by", "Submitted by", "Anyone"),
	}
}

// offerMine adds the user's own tasks to the filters: what is rendered for all users of a
// scope names none of them.
func offerMine(filters []views.Filter, user governance.User) {
	i := slices.IndexFunc(filters, func(f views.Filter) bool { return f.ID == "by" })
	if i < 0 || user.Local {
		return
	}
	me := views.Option{Value: user.Name, Label: "Me"}
	options := slices.DeleteFunc(filters[i].Options, func(o views.Option) bool {
		me.Selected = me.Selected || o.Value == user.Name && o.Selected
		return o.Value == user.Name
	})
	filters[i].Options = slices.Insert(options, 1, me)
}
