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
	classRange classstats.Range
	hidden     map[string]bool // columns, by their ids
}

// renamedStates maps states in addresses of earlier releases to their current names.
var renamedStates = map[string]tasks.State{"Pre-empted": tasks.Preempted, "Paused": tasks.Stopped}

// taskFilters are the filters of the list, with their names in addresses.
var taskFilters = []struct{ name, label, all string }{
	{"team", "Team", "All teams"},
	{"class", "Priority class", "All classes"},
	{"status", "Status", "All statuses"},
	{"kind", "Kind", "All kinds"},
	{"pool", "Pool", "All pools"},
	{"by", "Submitted by", "Anyone"},
}

// taskQuery parses an address; history decides which ranges exist.
func (h *Pages) taskQuery(values url.Values) taskQuery {
	return parseTaskQuery(values, h.History != nil)
}

// parseTaskQuery parses an address. past reports whether there is history.
func parseTaskQuery(values url.Values, past bool) taskQuery {
	q := taskQuery{Address: listing.NewAddress(urls.Tasks, "page")}
	keep := func(name string) []string { return q.TakeAll(values, name) }
	one := func(name string) string {
		if kept := keep(name); len(kept) > 0 {
			return kept[0]
		}
		return ""
	}
	q.teams, q.Kinds, q.Pools, q.SubmittedBy, q.Text = keep("team"), keep("kind"), keep("pool"), one("by"), one("q")
	for _, class := range keep("class") {
		if class == classstats.NoClass {
			class = ""
		}
		q.PriorityClasses = append(q.PriorityClasses, class)
	}
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
	if q.classRange = classstats.RangeNamed(one("range"), past); q.classRange.Within == 0 {
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
		q.Phase = ""
		finished := 0
		for _, state := range q.States {
			finished += b2i(state.Finished())
		}
		switch finished {
		case 0:
			q.Phase = index.Active
		case len(q.States):
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
		{Label: "Finished", Count: format.Thousands(int64(l.Phases[index.Finished])), URL: q.With("tab", string(index.Finished), "status", "", "page", ""), Current: q.Phase == index.Finished},
	}
}

func b2i(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// heads returns the shown columns, each with the address that sorts by it.
func (q taskQuery) heads() (shown []ui.Head) {
	for _, h := range taskColumns {
		if q.hidden[h.ID] {
			continue
		}
		shown = append(shown, q.head(h))
	}
	return shown
}

func (q taskQuery) head(h ui.Head) ui.Head {
	// The first click on figures and times sorts them descending.
	descendingFirst := h.Number || h.ID == string(index.BySubmitted) || h.ID == string(index.ByPriorityClass)
	return q.Head(h, string(q.Sort), q.Descending, descendingFirst, "asc")
}

// filters returns the filters of a list with the current choice.
func (q taskQuery) filters(l queries.List) []views.Filter {
	var filters []views.Filter
	for _, f := range taskFilters {
		filter := listing.NewFilter(f.name, f.label, f.all, q.Values.Get(f.name))
		switch f.name {
		case "team":
			for _, team := range l.Teams {
				filter.Add(team)
			}
		case "class":
			for _, class := range l.PriorityClasses {
				if class == "" {
					filter.Add(classstats.NoClass, "No priority class")
				} else {
					filter.Add(class, format.ClassName(class))
				}
			}
		case "status":
			for _, state := range tasks.States {
				if l.States[state] > 0 || slices.Contains(q.States, state) {
					filter.Add(string(state))
				}
			}
		case "kind":
			for _, kind := range l.Kinds {
				filter.Add(kind)
			}
		case "pool":
			for _, pool := range l.Pools {
				filter.Add(pool)
			}
		}
		filters = append(filters, filter.Done())
	}
	return filters
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
