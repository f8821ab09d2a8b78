package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	dashboardviews "kuota.dev/kuota/views/dashboard"

	"github.com/labstack/echo/v4"
)

// poolsShown is the largest number of pool lines on the dashboard.
const poolsShown = 8

// poolCell is one resource of one pool.
type poolCell struct {
	pool *capacity.PoolSnapshot
	pr   *capacity.PoolResource
}

// poolCells returns the lines that a query selects, largest first. Without a
// resource these are the accelerators of each pool, or its vCPUs if it has none.
func poolCells(q figures.Query, s *capacity.Snapshot) []poolCell {
	var found []poolCell
	for i := range s.Pools {
		p := &s.Pools[i]
		if q.Pool != "" && p.Name != q.Pool {
			continue
		}
		var own, cpu []poolCell
		for j := range p.Resources {
			c := &p.Resources[j]
			switch {
			case q.Resource == c.Resource, q.Resource == "" && catalog.IsAccelerator(c.Resource) && (c.Physical > 0 || c.Usage > 0 || c.Nominal > 0):
				own = append(own, poolCell{p, c})
			case q.Resource == "" && c.Resource == catalog.CPU:
				cpu = append(cpu, poolCell{p, c})
			}
		}
		if len(own) == 0 {
			own = cpu
		}
		found = append(found, own...)
	}
	slices.SortStableFunc(found, func(a, b poolCell) int {
		return cmp.Or(compareTrue(catalog.IsAccelerator(a.pr.Resource), catalog.IsAccelerator(b.pr.Resource)), cmp.Compare(b.pr.Physical, a.pr.Physical), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	return found
}

// compareTrue orders true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func poolTable(q figures.Query, s *capacity.Snapshot) dashboardviews.PoolTable {
	cells := poolCells(q, s)
	t := dashboardviews.PoolTable{Note: "by pool; the mark is the sum of all quotas", CSVURL: q.Seen(urls.CapacityCSV), MoreURL: q.Seen(urls.Instances)}
	if more := len(cells) - poolsShown; more > 0 {
		t.More = fmt.Sprintf("The %d largest of %d pools.", poolsShown, len(cells))
		cells = cells[:poolsShown]
	}
	for _, c := range cells {
		t.Lines = append(t.Lines, poolUse(c))
	}
	return t
}

func poolUse(c poolCell) dashboardviews.PoolUse {
	p, u, resource := c.pool, c.pr, c.pr.Resource
	of := func(amount resources.Amount) string { return quota.Short(resource, amount) }
	l := dashboardviews.PoolUse{
		ID: "pool-" + p.Name + "-" + resource, Name: p.Name, URL: urls.With(urls.Instances, nil, "pool", p.Name), Unit: format.Unit(resource),
		Sub:         format.JoinedBy(" · ", p.AcceleratorModel, format.Count(int(p.Nodes), "instance")),
		PoolNumbers: figures.PoolNumbers(u), Unplaced: of(u.Unbound),
	}
	var trouble []string
	if p.Recovering > 0 {
		trouble = append(trouble, format.Thousands(p.Recovering)+" pending recovery")
	}
	if p.Cordoned > 0 {
		trouble = append(trouble, format.Thousands(p.Cordoned)+" cordoned")
	}
	l.Trouble = strings.Join(trouble, " · ")
	if unplaced := u.Borrowed.Minus(u.BorrowedBound); u.Unbound > 0 && unplaced > 0 {
		l.UnplacedBorrowed = of(unplaced) + " borrowed"
	}
	l.Meter.Label = fmt.Sprintf("Of %s %s: %s own, %s borrowed, %s outside Kueue, %s unhealthy, %s idle; %s allocated as quota; %s used and not placed",
		l.Physical, l.Unit, l.Own, l.Borrowed, l.Outside, l.Unhealthy, l.Idle, l.Quota, l.Unplaced)
	return l
}

// capacityCSV answers GET /capacity.csv: every resource of every pool, or the
// selected ones.
func (h *Pages) capacityCSV(c echo.Context, scope access.Scope) error {
	q := h.dashboardQuery(c.Request().Context(), c.QueryParams())
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	rows := [][]string{{
		"pool", "resource", "unit", "instances", "ready", "pending recovery", "cordoned", "physical", "own", "borrowed on instances", "outside Kueue", "unhealthy", "idle",
		"physical pending recovery", "physical cordoned", "quota", "over capacity by", "held", "not placed", "borrowed", "lent", "borrowed of unallocated", "largest block", "growth", "reserve", "borrowed of reserve",
	}}
	for i := range s.Pools {
		p := &s.Pools[i]
		for _, u := range p.Resources {
			if q.Pool != "" && q.Pool != p.Name || q.Resource != "" && q.Resource != u.Resource {
				continue
			}
			row := []string{p.Name, u.Resource, format.Unit(u.Resource)}
			for _, n := range []int64{p.Nodes, p.Ready, p.Recovering, p.Cordoned} {
				row = append(row, fmt.Sprint(n))
			}
			for _, amount := range []resources.Amount{
				u.Physical, u.OwnBound, u.BorrowedBound, u.Outside, u.Unhealthy, u.Idle, u.Recovering, u.Cordoned, u.Nominal, u.Overallocated(), u.Usage, u.Unbound, u.Borrowed, u.LentToCohort, u.BorrowedUnallocated, u.LargestFree, u.Growth, u.Reserve, u.BorrowedReserve,
			} {
				row = append(row, quota.Number(u.Resource, amount))
			}
			rows = append(rows, row)
		}
	}
	return console.CSVFile(c, "capacity", rows)
}
