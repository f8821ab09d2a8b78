package policy

import (
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

const pricesPath = "spec.prices.hourly"

// priceRow is a price as typed.
type priceRow struct{ pool, resource, from, own, borrowed string }

func (r *priceRow) Fields() map[string]*string {
	return map[string]*string{"pool": &r.pool, "resource": &r.resource, "from": &r.from, "own": &r.own, "borrowed": &r.borrowed}
}

// empty reports whether nothing was typed: the menus and the day can have been filled in.
func (r priceRow) empty() bool { return r.own == "" && r.borrowed == "" }

func priceRows(prices []v1alpha1.HourlyPrice) (rows []priceRow) {
	for _, p := range prices {
		rows = append(rows, priceRow{pool: p.Pool, resource: p.Resource, from: p.From, own: p.Own, borrowed: p.Borrowed})
	}
	return rows
}

// nextPrice is a new row, with the pool and resource of the last one, from today.
func (f *policyForm) nextPrice() priceRow {
	next := priceRow{from: time.Now().UTC().Format(time.DateOnly)}
	if n := len(f.prices); n > 0 {
		next.pool, next.resource = f.prices[n-1].pool, f.prices[n-1].resource
	}
	return next
}

func (f *policyForm) parsePrices(spec *v1alpha1.ClusterPolicySpec, _ *governance.FieldErrors) {
	prices := &v1alpha1.Prices{Currency: f.currency}
	for _, row := range f.prices {
		if !row.empty() {
			prices.Hourly = append(prices.Hourly, v1alpha1.HourlyPrice{Pool: row.pool, Resource: row.resource, From: row.from, Own: row.own, Borrowed: row.borrowed})
		}
	}
	if f.currency != "" || len(prices.Hourly) > 0 {
		spec.Prices = prices
	}
}
