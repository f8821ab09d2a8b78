package allocations

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// teamsOnPage is the number of allocations on a page of the list.
const teamsOnPage = 100

// listed is an allocation with what the list is filtered and sorted by.
type listed struct {
	*v1alpha1.ComputeAllocation
	status   views.Status
	resolved quota.Resolved
	current  bool // whether resolved is the quota of the spec, with that of shares
}

// listOf returns the allocations of a state.
func listOf(state allocations.State) (all []listed) {
	for i := range state.Allocations {
		all = append(all, listedOf(&state.Allocations[i], state.Types, state.Departments))
	}
	return all
}

func listedOf(a *v1alpha1.ComputeAllocation, types catalog.Catalog, tree quota.Departments) listed {
	l := listed{ComputeAllocation: a, status: allocationStatus(a, tree.Above(a.Spec.Department))}
	l.resolved, l.current = quota.Effective(a, types)
	l.resolved = l.resolved.Total()
	return l
}

// in reports whether the team has quota in a pool with this name, or with a name that
// contains it if part is set.
func (l listed) in(pool string, part bool) bool {
	return slices.ContainsFunc(l.resolved.Pools, func(p quota.FlavorQuotas) bool {
		return p.Name == pool || part && strings.Contains(strings.ToLower(p.Name), pool)
	})
}

// namespace returns the namespace of the team's tasks; empty while there is none.
func (l listed) namespace() string { return cmp.Or(l.Status.Namespace, l.Spec.Namespace) }

// listColumns are the columns of the list.
var listColumns = []listing.Column[listed]{
	{Head: ui.Head{Label: "Team", ID: "name"}, Compare: func(a, b listed) int { return cmp.Compare(a.Name, b.Name) }},
	{Head: ui.Head{Label: "Status", ID: "status"}, Compare: func(a, b listed) int { return cmp.Compare(a.status.Label, b.status.Label) }},
	{Head: ui.Head{Label: "Quota"}},
	{Head: ui.Head{Label: "Lending and borrowing"}},
	{Head: ui.Head{Label: "Preemption"}},
	{Head: ui.Head{Label: "Weight", ID: "weight", Number: true}, Compare: func(a, b listed) int { return cmp.Compare(a.Spec.FairShareWeight, b.Spec.FairShareWeight) }},
}

// listQuery is the query in the address of the list.
type listQuery struct {
	listing.Address
	text, status, pool string
	department         string
	sort               string // the id of a column; empty for the default
	descending         bool
	page               int
}

func parseListQuery(values url.Values) listQuery {
	q := listQuery{Address: listing.NewAddress(urls.Policies, "page")}
	q.text, q.status, q.pool = q.Take(values, "q"), q.Take(values, "status"), q.Take(values, "pool")
	q.department = q.Take(values, "department")
	q.sort, q.descending = listing.TakeSort(q.Address, values, listColumns)
	q.page, _ = strconv.Atoi(q.Take(values, q.PageName))
	return q
}

func (q listQuery) filtered() bool { return q.text+q.status+q.pool+q.department != "" }

// found returns those of all that the filters select, in order.
func (q listQuery) found(all []listed, tree quota.Departments) (found []listed) {
	text := strings.ToLower(q.text)
	for _, l := range all {
		matches := strings.Contains(l.Name, text) || strings.Contains(strings.ToLower(l.Spec.DisplayName), text) || strings.Contains(l.namespace(), text) || l.in(text, true)
		if matches && tree.Includes(q.department, l.Spec.Department) && (q.status == "" || l.status.Label == q.status) && (q.pool == "" || l.in(q.pool, false)) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, listing.Order(listColumns, q.sort, q.descending))
	return found
}

// filters returns the choices that select any of all.
func (q listQuery) filters(all []listed) []views.Filter {
	statuses, pools := map[string]bool{}, map[string]bool{}
	for _, l := range all {
		statuses[l.status.Label] = true
		for _, pool := range l.resolved.Pools {
			pools[pool.Name] = true
		}
	}
	return []views.Filter{
		q.Filter("status", "Status", "All statuses", slices.Sorted(maps.Keys(statuses))...),
		q.Filter("pool", "Pool", "All pools", slices.Sorted(maps.Keys(pools))...),
	}
}

func (q listQuery) heads() (heads []ui.Head) {
	for _, column := range listColumns {
		if column.Compare != nil {
			column.Head = q.Head(column.Head, cmp.Or(q.sort, listColumns[0].ID), q.descending, column.Number, "")
		}
		heads = append(heads, column.Head)
	}
	return heads
}

// note counts the selected teams.
func (q listQuery) note(found, all int) string {
	switch {
	case all == 0:
		return ""
	case q.filtered():
		return format.Thousands(found) + " of " + format.Count(all, "team")
	}
	return format.Count(all, "team")
}
