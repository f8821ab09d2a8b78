package handlers

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/views"
)

// figureQuery is what the address of a page of figures asks for.
type figureQuery struct {
	path               string
	textName, pageName string     // of the search for teams, and of the page of their list
	values             url.Values // as addresses have them
	resource, pool     string     // empty for the usual one, and for all
	text               string
	sort               string // a column of teams
	descending         bool
	page               int
	over               timeRange
}

func parseFigures(path, textName, pageName string, values url.Values, over timeRange) figureQuery {
	q := figureQuery{path: path, textName: textName, pageName: pageName, values: url.Values{}}
	one := func(name string) string {
		value := strings.TrimSpace(values.Get(name))
		if value != "" {
			q.values.Set(name, value)
		}
		return value
	}
	q.resource, q.pool, q.text, q.sort = one("resource"), one("pool"), one(textName), one("sort")
	if q.descending = one("order") == "desc"; !q.descending {
		q.values.Del("order")
	}
	if !slices.ContainsFunc(teamColumns, func(c views.ColumnHead) bool { return c.ID == q.sort }) {
		q.sort = ""
		q.values.Del("sort")
		q.values.Del("order")
	}
	q.page, _ = strconv.Atoi(one(pageName))
	q.over = over
	q.over.keep(q.values)
	return q
}

func (q figureQuery) with(pairs ...string) string { return addressWith(q.path, q.values, pairs...) }

// seen is the address of another path about the same resource and pool.
func (q figureQuery) seen(path string, pairs ...string) string {
	values := url.Values{}
	for _, name := range []string{"resource", "pool"} {
		if value := q.values.Get(name); value != "" {
			values.Set(name, value)
		}
	}
	return addressWith(path, values, pairs...)
}

// counted is the resource that a page is about: what was asked for, or the
// accelerator that the cluster has most of, or vCPUs where it has none.
func (q figureQuery) counted(s *capacity.Snapshot) string {
	if q.resource != "" {
		return q.resource
	}
	physical := clusterSums(s)
	most, found := int64(0), catalog.CPU
	for _, resource := range resourceNames(s) {
		if amount := physical[resource].Physical; isAccelerator(resource) && amount > most {
			most, found = amount, resource
		}
	}
	return found
}

// resourceNames are the resources of all pools, accelerators first.
func resourceNames(s *capacity.Snapshot) []string {
	found := map[string]bool{}
	for i := range s.Pools {
		for _, c := range s.Pools[i].Cells {
			found[c.Resource] = true
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.SortFunc(names, quota.Compare)
	return names
}

// resourceWord is how a choice of resources names one.
func resourceWord(resource string) string {
	switch resource {
	case catalog.CPU:
		return "vCPUs"
	case catalog.Memory:
		return "Memory"
	}
	return upper(unitOf(resource))
}

// filters are the choices of a page of figures.
func (q figureQuery) filters(s *capacity.Snapshot) []views.Filter {
	resources := filterOf("resource", "Resource", resourceWord(figureQuery{}.counted(s))+" (usual)", q.resource)
	for _, name := range resourceNames(s) {
		resources.add(name, resourceWord(name))
	}
	pools := filterOf("pool", "Pool", "All pools", q.pool)
	for i := range s.Pools {
		pools.add(s.Pools[i].Name)
	}
	return []views.Filter{resources.done(), pools.done()}
}

// controls are what chooses; with a range for pages that have one.
func (q figureQuery) controls(label string, s *capacity.Snapshot, ranges bool) views.Controls {
	c := views.Controls{Label: label, Action: q.path, TextName: q.textName, Text: q.text, Filters: q.filters(s)}
	for _, name := range []string{"sort", "order", "range", "from", "to"} {
		if value := q.values.Get(name); value != "" {
			c.Fields = append(c.Fields, views.HiddenField{Name: name, Value: value})
		}
	}
	if q.text+q.resource+q.pool != "" {
		c.ClearURL = q.with("resource", "", "pool", "", q.textName, "", q.pageName, "")
	}
	if ranges {
		picker := q.over.picker("time", q.path, q.values)
		c.Picker = &picker
	}
	return c
}

// where names the pools that figures are of.
func (q figureQuery) where() string {
	if q.pool == "" {
		return "in all pools"
	}
	return "in pool " + q.pool
}
