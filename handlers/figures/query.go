package figures

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// ClusterSums returns the sums over all pools, by resource.
func ClusterSums(s *capacity.Snapshot) map[string]usage.PoolUsage {
	sums := map[string]usage.PoolUsage{}
	for i := range s.Pools {
		for _, c := range s.Pools[i].Resources {
			sum := sums[c.Resource]
			sum.Physical = sum.Physical.Plus(c.Physical)
			sum.Usage = sum.Usage.Plus(c.Usage)
			sum.Borrowed = sum.Borrowed.Plus(c.Borrowed)
			sum.Unbound = sum.Unbound.Plus(c.Unbound)
			sum.Growth = sum.Growth.Plus(c.Growth)
			sum.Unhealthy = sum.Unhealthy.Plus(c.Unhealthy)
			sums[c.Resource] = sum
		}
	}
	return sums
}

// Query is the query in the address of a page of figures.
type Query struct {
	listing.Address
	textName       string // name of the value with the search for teams
	Department     string // of the teams, with those below it; empty for all
	Tree           departments.State
	Resource, Pool string // empty for the default resource, and for all pools
	text           string
	sort           string // a column of teams
	descending     bool
	Page           int
	Over           timerange.Range
}

// Parse reads the query of the page at path.
func Parse(path, textName, pageName string, values url.Values, over timerange.Range) Query {
	q := Query{Address: listing.NewAddress(path, pageName), textName: textName}
	one := func(name string) string { return q.Take(values, name) }
	q.Resource, q.Pool, q.text, q.Department = one("resource"), one("pool"), one(textName), one("department")
	q.sort, q.descending = listing.TakeSort(q.Address, values, teamColumns)
	q.Page, _ = strconv.Atoi(one(q.PageName))
	q.Over = over
	one("by")
	q.Over.SetValues(q.Values)
	return q
}

// Seen returns the address of another page about the same resource and pool.
func (q Query) Seen(path string, pairs ...string) string {
	values := url.Values{}
	for _, name := range []string{"resource", "pool", "department"} {
		if value := q.Values.Get(name); value != "" {
			values.Set(name, value)
		}
	}
	return urls.With(path, values, pairs...)
}

// Counted returns the resource of the page: the requested one, else the accelerator
// that the cluster has most of, else vCPUs.
func (q Query) Counted(s *capacity.Snapshot) string {
	if q.Resource != "" {
		return q.Resource
	}
	physical := ClusterSums(s)
	most, found := resources.Amount(0), catalog.CPU
	for _, resource := range ResourceNames(s) {
		if amount := physical[resource].Physical; catalog.IsAccelerator(resource) && amount > most {
			most, found = amount, resource
		}
	}
	return found
}

// ResourceNames returns the resources of all pools, accelerators first.
func ResourceNames(s *capacity.Snapshot) []string {
	found := map[string]bool{}
	for i := range s.Pools {
		for _, c := range s.Pools[i].Resources {
			found[c.Resource] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), quota.Compare)
}

// PoolNames returns the names of all pools.
func PoolNames(s *capacity.Snapshot) (names []string) {
	for i := range s.Pools {
		names = append(names, s.Pools[i].Name)
	}
	return names
}

// PoolNumbers returns the amounts of a resource of a pool. The caller sets the label of its
// meter, and the words for what Over counts.
func PoolNumbers(c *capacity.PoolResource) views.PoolNumbers {
	of := func(amount resources.Amount) string { return quota.Short(c.Resource, amount) }
	n := views.PoolNumbers{
		Physical: of(c.Physical), Own: of(c.OwnBound), Borrowed: of(c.BorrowedBound), Outside: of(c.Outside), Unhealthy: of(c.Unhealthy), Idle: of(c.Idle),
		Quota: of(c.Nominal), Largest: of(c.LargestFree),
		Meter: ui.MeterProps{Max: charts.BarMax(c.Resource, c.Nominal, c.Physical), Mark: float64(c.Nominal), Parts: []ui.MeterPart{
			{Use: "own", Value: float64(c.OwnBound)}, {Use: "borrowed", Value: float64(c.BorrowedBound)}, {Use: "outside", Value: float64(c.Outside)},
			{Use: "lost", Value: float64(c.Unhealthy)}, {Use: "idle", Value: float64(c.Idle)},
		}},
	}
	if over := c.Overallocated(); over > 0 && !quota.ExceedsAnyCluster(c.Resource, c.Nominal) { // else meant as no limit
		n.Over = "over capacity by " + of(over)
	}
	return n
}

// filters returns the filters of a page of figures.
func (q Query) filters(s *capacity.Snapshot) []views.Filter {
	resources := listing.NewFilter("resource", "Resource", format.ResourceName(Query{}.Counted(s))+" (usual)", q.Resource)
	for _, name := range ResourceNames(s) {
		resources.Add(name, format.ResourceName(name))
	}
	filters := []views.Filter{resources.Done(), q.Filter("pool", "Pool", "All pools", PoolNames(s)...)}
	if of := console.DepartmentFilter(q.Tree, q.Department); of.ID != "" {
		filters = append(filters, of)
	}
	return filters
}

// Controls returns the filters, with a range picker if ranges is set.
func (q Query) Controls(label string, s *capacity.Snapshot, ranges bool) views.Controls {
	c := views.Controls{Label: label, Action: q.Path, TextName: q.textName, Text: q.text, Filters: q.filters(s)}
	for _, name := range []string{"sort", "order", "range", "from", "to", "by"} {
		if value := q.Values.Get(name); value != "" {
			c.Fields = append(c.Fields, views.HiddenField{Name: name, Value: value})
		}
	}
	if q.text+q.Resource+q.Pool+q.Department != "" {
		c.ClearURL = q.With("resource", "", "pool", "", "department", "", q.textName, "", q.PageName, "")
	}
	if ranges {
		picker := q.Over.Picker("time", q.Path, q.Values)
		c.Picker = &picker
	}
	return c
}

// Where names the pools that the figures cover.
func (q Query) Where() string {
	if q.Pool == "" {
		return "in all pools"
	}
	return "in pool " + q.Pool
}
