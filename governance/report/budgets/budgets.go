package budgets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/report/accounting"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recent is the time whose usage is projected to the end of the period.
const recent = time.Hour

// Period returns the period of a budget that contains a time.
func Period(b *v1alpha1.Budget, now time.Time) (from, to time.Time, err error) {
	place, err := effective.Location(b.TimeZone)
	if err != nil {
		return from, to, err
	}
	g := cmp.Or(map[v1alpha1.BudgetPeriod]accounting.Granularity{v1alpha1.BudgetWeek: accounting.Week, v1alpha1.BudgetQuarter: accounting.Quarter}[b.Period], accounting.Month)
	return g.Begin(now.In(place)), g.Next(now.In(place)), nil
}

// Holder is what has a budget.
type Holder struct {
	Budget  *v1alpha1.Budget
	Created time.Time
	Teams   []string // whose usage counts, sorted
}

// Count returns the budget status of each of these holders, in their order; nil for those
// whose period cannot be read or that could not be counted, of which the error names why. What
// teams use is added up per period, so that budgets of the same period cost one report.
func Count(ctx context.Context, store accounting.Store, holders []Holder, prices accounting.Prices, now time.Time) ([]*v1alpha1.BudgetStatus, error) {
	type period struct{ from, to time.Time }
	of := map[period][]int{}
	for i := range holders {
		from, to, err := Period(holders[i].Budget, now)
		if err != nil {
			continue // the controller of allocations reports it
		}
		in := period{from.UTC(), to.UTC()}
		of[in] = append(of[in], i)
	}
	counted := make([]*v1alpha1.BudgetStatus, len(holders))
	var failed []error
	for of, list := range of {
		var names []string
		for _, i := range list {
			names = append(names, holders[i].Teams...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		lately := of.from
		if at := now.Add(-recent); at.After(of.from) {
			lately = at
		}
		reports, err := accounting.Reports(ctx, store, accounting.Query{Teams: names}, []time.Time{of.from, lately, now}, prices)
		if err != nil {
			failed = append(failed, fmt.Errorf("report from %s: %w", of.from.Format(time.DateOnly), err))
			continue
		}
		for _, i := range list {
			counted[i] = status(holders[i], reports, of.from, of.to)
		}
	}
	return counted, errors.Join(failed...)
}

// status returns the budget status of a holder from the report of the period until lately,
// and the one since.
func status(h Holder, reports []accounting.Report, from, to time.Time) *v1alpha1.BudgetStatus {
	b := h.Budget
	before, since := used(h, reports[0]), used(h, reports[1])
	sum := new(big.Rat).Add(before, since)
	limit := limitOf(b)
	s := &v1alpha1.BudgetStatus{
		From: metav1.Time{Time: from}, To: metav1.Time{Time: to}, Counted: metav1.Time{Time: reports[1].To.UTC().Truncate(time.Second)},
		Used: sum.FloatString(2), Percent: percentOf(sum, limit),
	}
	var unknown time.Duration
	for _, gap := range slices.Concat(reports[0].Gaps, reports[1].Gaps) { // a team that did not exist used nothing
		unknown += max(0, gap.To.Sub(governance.Later(gap.From, h.Created)))
	}
	if unknown >= time.Second {
		s.Unknown = &metav1.Duration{Duration: unknown.Truncate(time.Second)}
	}
	if known := reports[1].To.Sub(reports[1].From) - reports[1].Unknown; known >= time.Minute && to.After(reports[1].To) {
		left := big.NewRat(int64(to.Sub(reports[1].To)), int64(known))
		s.Projected = new(big.Rat).Add(sum, left.Mul(left, since)).FloatString(2)
	}
	for _, step := range b.Steps {
		if s.Percent >= int64(step.Percent) && (s.Action == "" || slices.Index(v1alpha1.BudgetActions, step.Action) > slices.Index(v1alpha1.BudgetActions, s.Action)) {
			s.Action = step.Action
		}
	}
	return s
}

// percentOf returns sum in percent of limit, rounded down; as much as the status can hold
// for more.
func percentOf(sum, limit *big.Rat) int64 {
	percent := new(big.Rat).Quo(new(big.Rat).Mul(sum, big.NewRat(100, 1)), limit)
	whole := new(big.Int).Quo(percent.Num(), percent.Denom())
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return whole.Int64()
}

func limitOf(b *v1alpha1.Budget) *big.Rat {
	limit := new(big.Rat)
	if b.AcceleratorHours != nil {
		limit.SetInt64(*b.AcceleratorHours)
	} else {
		limit.SetString(b.Money)
	}
	if limit.Sign() <= 0 { // which the schema rejects
		return big.NewRat(1, 1)
	}
	return limit
}

// used returns what the teams of a holder used, in the unit of its budget.
func used(h Holder, report accounting.Report) *big.Rat {
	sum := new(big.Rat)
	for _, line := range report.Lines {
		switch {
		case line.Kind != accounting.Team || !slices.Contains(h.Teams, line.Team):
		case h.Budget.AcceleratorHours == nil:
			if line.Cost != nil {
				sum.Add(sum, line.Cost)
			}
		case catalog.IsAccelerator(line.Resource) && !catalog.IsPartition(line.Resource):
			sum.Add(sum, new(big.Rat).SetFrac(line.Amount(), big.NewInt(time.Hour.Milliseconds())))
		}
	}
	return sum
}
