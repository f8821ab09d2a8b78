package instances

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"

	"github.com/labstack/echo/v4"
)

// nodesPageSize is the number of nodes on a page of the list.
const nodesPageSize = 100

// nodeStates are all states of nodes, in the order of the filter.
var nodeStates = []capacity.NodeState{capacity.Ready, capacity.Recovering, capacity.Cordoned}

// nodeQuery is the query in the address of a list of nodes.
type nodeQuery struct {
	listing.Address
	pool, state, text string
	sort              string // a column's id
	descending        bool
	page              int
}

func parseNodeQuery(values url.Values) nodeQuery {
	q := nodeQuery{Address: listing.NewAddress(urls.Instances, "page")}
	one := func(name string) string { return q.Take(values, name) }
	q.pool, q.state, q.text = one("pool"), one("state"), one("q")
	if q.sort = one("sort"); !slices.ContainsFunc(nodeColumns, func(c listing.Column[*capacity.NodeSnapshot]) bool { return c.ID == q.sort }) {
		q.sort = "name"
		q.Values.Del("sort")
	}
	q.descending = one("order") == "desc"
	q.page, _ = strconv.Atoi(one("page"))
	return q
}

func (q nodeQuery) filtered() bool { return q.pool != "" || q.state != "" || q.text != "" }

// nodeColumns are the columns of a list of nodes.
var nodeColumns = []listing.Column[*capacity.NodeSnapshot]{
	{Head: ui.Head{Label: "Name", ID: "name"}, Compare: func(a, b *capacity.NodeSnapshot) int { return strings.Compare(a.Name, b.Name) }},
	{Head: ui.Head{Label: "State", ID: "state"}, Compare: func(a, b *capacity.NodeSnapshot) int {
		return slices.Index(nodeStates, a.State) - slices.Index(nodeStates, b.State)
	}},
	{Head: ui.Head{Label: "Used by", ID: "teams"}, Compare: func(a, b *capacity.NodeSnapshot) int { return slices.Compare(teamsOn(a), teamsOn(b)) }},
	{Head: ui.Head{Label: "Pool", ID: "pool"}, Compare: func(a, b *capacity.NodeSnapshot) int { return strings.Compare(a.Pool, b.Pool) }},
	{Head: ui.Head{Label: "Type", ID: "type"}, Compare: func(a, b *capacity.NodeSnapshot) int { return strings.Compare(a.Type, b.Type) }},
	{Head: ui.Head{Label: "Accelerators", ID: "accelerators", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int {
		return cmp.Compare(a.Physical.Accelerators(), b.Physical.Accelerators())
	}},
	{Head: ui.Head{Label: "Bound", ID: "bound", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int {
		return cmp.Compare(a.Bound.Accelerators(), b.Bound.Accelerators())
	}},
	{Head: ui.Head{Label: "Free", ID: "free", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int {
		return cmp.Compare(a.Free.Accelerators(), b.Free.Accelerators())
	}},
	{Head: ui.Head{Label: "vCPU", Unit: "bound", ID: "vcpu", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int { return cmp.Compare(a.Bound[catalog.CPU], b.Bound[catalog.CPU]) }},
	{Head: ui.Head{Label: "Memory", Unit: "GiB, bound", ID: "memory", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int {
		return cmp.Compare(a.Bound[catalog.Memory], b.Bound[catalog.Memory])
	}},
	{Head: ui.Head{Label: "Pods", ID: "pods", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int { return cmp.Compare(a.Pods, b.Pods) }},
	{Head: ui.Head{Label: "Age", ID: "age", Number: true}, Compare: func(a, b *capacity.NodeSnapshot) int { return b.Created.Compare(a.Created) }},
}

// acceleratorFigures formats the amounts of the accelerators that exist, such as
// "8", or "4 GPUs, 8 mig-1g.5gb" for several kinds; "0" without any.
func acceleratorFigures(there, of quota.Resources) string {
	var names, parts []string
	for _, name := range there.Names() {
		if catalog.IsAccelerator(name) && there[name] > 0 {
			names, parts = append(names, name), append(parts, quota.Amount(name, of[name]))
		}
	}
	switch len(names) {
	case 0:
		return "0"
	case 1:
		return quota.Grouped(names[0], of[names[0]])
	}
	return strings.Join(parts, ", ")
}

// teamsOn returns the teams with pods on a node, by name. "" is usage of no team
// that the reader sees, and comes last.
func teamsOn(n *capacity.NodeSnapshot) []string {
	names := slices.Sorted(maps.Keys(n.Teams))
	if len(names) > 0 && names[0] == "" {
		names = append(names[1:], "")
	}
	return names
}

// resourcesOf returns the resources counted by quota that a node has, or that pods
// on it use.
func resourcesOf(n *capacity.NodeSnapshot) []string {
	all := quota.Resources{}
	for _, some := range []quota.Resources{n.Physical, n.Allocatable, n.Bound, n.Outside} {
		for name, amount := range some {
			if amount != 0 && catalog.IsQuotaResource(name) {
				all[name] = 1
			}
		}
	}
	return all.Names()
}

// find returns the selected nodes in order.
func (q nodeQuery) find(nodes []capacity.NodeSnapshot) []*capacity.NodeSnapshot {
	text := strings.ToLower(q.text)
	found := []*capacity.NodeSnapshot{}
	for i := range nodes {
		n := &nodes[i]
		if (q.pool == "" || n.Pool == q.pool) && (q.state == "" || string(n.State) == q.state) && (text == "" || nodeContains(n, text)) {
			found = append(found, n)
		}
	}
	slices.SortStableFunc(found, listing.Order(nodeColumns, q.sort, q.descending))
	return found
}

func nodeContains(n *capacity.NodeSnapshot, lower string) bool {
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), lower) }
	return contains(n.Name) || contains(n.Type) || slices.ContainsFunc(slices.Collect(maps.Keys(n.Teams)), contains)
}

func (q nodeQuery) heads() (heads []ui.Head) {
	for _, column := range nodeColumns {
		heads = append(heads, q.Head(column.Head, q.sort, q.descending, column.Number, "")) // figures descending first
	}
	return heads
}

func (q nodeQuery) filters(s *capacity.Snapshot) []views.Filter {
	var states []string
	for _, state := range nodeStates {
		states = append(states, string(state))
	}
	return []views.Filter{q.Filter("pool", "Pool", "All pools", figures.PoolNames(s)...), q.Filter("state", "State", "All states", states...)}
}

// instancesCSV answers GET /instances.csv: all nodes of a list.
func (h *Pages) instancesCSV(c echo.Context, scope access.Scope) error {
	snapshot, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	rows := [][]string{{"name", "pool", "type", "state", "since", "why", "made", "pods", "resource", "unit", "physical", "for pods", "bound", "outside Kueue", "free", "teams"}}
	for _, n := range parseNodeQuery(c.QueryParams()).find(snapshot.Nodes) {
		for _, name := range resourcesOf(n) {
			rows = append(rows, []string{
				n.Name, n.Pool, n.Type, string(n.State), format.Time(n.Since), n.Message, format.Time(n.Created), strconv.FormatInt(n.Pods, 10), name, quota.Unit(name, 2),
				quota.Number(name, n.Physical[name]), quota.Number(name, n.Allocatable[name]), quota.Number(name, n.Bound[name]), quota.Number(name, n.Outside[name]), quota.Number(name, n.Free[name]),
				teamsText(n, name),
			})
		}
	}
	return console.CSVFile(c, "instances", rows)
}

// teamsText returns the teams with their usage of one resource of a node.
func teamsText(n *capacity.NodeSnapshot, resource string) string {
	var parts []string
	for _, team := range teamsOn(n) {
		if amount := n.Teams[team][resource]; amount > 0 {
			parts = append(parts, cmp.Or(team, format.OtherTeams)+" "+quota.Number(resource, amount))
		}
	}
	return strings.Join(parts, ", ")
}
