package accounting

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
)

// Price is what an hour of one unit of a resource of a pool costs from a time on, until
// the next price of the same. A unit is a device, a vCPU or a GiB.
type Price struct {
	Pool, Resource string
	From           time.Time
	Own, Borrowed  *big.Rat
}

// Prices are all prices, in one currency.
type Prices struct {
	Currency string // such as "EUR"; empty without prices
	List     []Price
}

// PricesOf returns the prices of a policy; none for nil. A price without a date or an amount is
// left out.
func PricesOf(spec *v1alpha1.Prices) (p Prices) {
	if spec == nil {
		return p
	}
	p.Currency = spec.Currency
	for i := range spec.Hourly {
		hourly := &spec.Hourly[i]
		from, err := hourly.Time()
		own, valid := new(big.Rat).SetString(hourly.Own)
		borrowed, both := new(big.Rat).SetString(cmp.Or(hourly.Borrowed, hourly.Own))
		if err == nil && valid && both {
			p.List = append(p.List, Price{Pool: hourly.Pool, Resource: hourly.Resource, From: from, Own: own, Borrowed: borrowed})
		}
	}
	return p
}

// At returns the price that holds at a time; nil for none.
func (p Prices) At(pool, resource string, at time.Time) *Price {
	var found *Price
	for i := range p.List {
		if price := &p.List[i]; price.Pool == pool && price.Resource == resource && !price.From.After(at) && (found == nil || price.From.After(found.From)) {
			found = price
		}
	}
	return found
}

// cut adds to bounds the times between them at which a price changes. at has the index of
// the interval of bounds that each of the resulting intervals is a part of.
func (p Prices) cut(q Query, bounds []time.Time) (finer []time.Time, at []int) {
	for i, from := range bounds[:len(bounds)-1] {
		begins := []time.Time{from}
		for _, price := range p.List {
			if (q.Pool == "" || q.Pool == price.Pool) && (q.Resource == "" || q.Resource == price.Resource) && price.From.After(from) && price.From.Before(bounds[i+1]) {
				begins = append(begins, price.From)
			}
		}
		slices.SortFunc(begins, time.Time.Compare)
		for _, begin := range slices.CompactFunc(begins, time.Time.Equal) {
			finer, at = append(finer, begin), append(at, i)
		}
	}
	return append(finer, bounds[len(bounds)-1]), at
}

// cost returns what amounts × ms of a resource cost.
func (p *Price) cost(own, borrowed *big.Int, unit int64) *big.Rat {
	sum := new(big.Rat)
	for _, part := range []struct {
		price  *big.Rat
		amount *big.Int
	}{{p.Own, own}, {p.Borrowed, borrowed}} {
		sum.Add(sum, new(big.Rat).Mul(part.price, new(big.Rat).SetFrac(part.amount, big.NewInt(unit*time.Hour.Milliseconds()))))
	}
	return sum
}

// Hour returns what an hour of requests in a pool costs at a time, as own and as borrowed
// compute. known is whether one of their resources has a price.
func (p Prices) Hour(pool string, requests quota.Resources, at time.Time) (own, borrowed *big.Rat, known bool) {
	own, borrowed = new(big.Rat), new(big.Rat)
	for name, amount := range requests {
		price := p.At(pool, name, at)
		if price == nil || amount <= 0 {
			continue
		}
		unit := Unit(name)
		if name == catalog.Memory { // history has MiB
			unit = int64(catalog.GiB)
		}
		units := new(big.Rat).SetFrac64(int64(amount), unit)
		own.Add(own, new(big.Rat).Mul(price.Own, units))
		borrowed.Add(borrowed, new(big.Rat).Mul(price.Borrowed, units))
		known = true
	}
	return own, borrowed, known
}

// Granularity is the length of the periods of a report.
type Granularity string

// The granularities. A week begins on Monday.
const (
	Day   Granularity = "day"
	Week  Granularity = "week"
	Month Granularity = "month"
	// Quarter begins in January, April, July or October. Only budgets have it.
	Quarter Granularity = "quarter"
)

// Begin returns the beginning of the period that contains a time, in its time zone.
func (g Granularity) Begin(at time.Time) time.Time {
	year, month, day := at.Date()
	switch g {
	case Week:
		day -= (int(at.Weekday()) + 6) % 7
	case Month:
		day = 1
	case Quarter:
		month, day = month-(month-1)%3, 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, at.Location())
}

// Next returns the beginning of the period that follows the one that contains a time.
func (g Granularity) Next(at time.Time) time.Time {
	year, month, day := g.Begin(at).Date()
	switch g {
	case Week:
		day += 7
	case Month:
		month++
	case Quarter:
		month += 3
	default:
		day++
	}
	return time.Date(year, month, day, 0, 0, 0, 0, at.Location())
}

// Bounds returns from, the beginnings of the periods between, and to.
func (g Granularity) Bounds(from, to time.Time) []time.Time {
	bounds := []time.Time{from}
	for at := g.Next(from); at.Before(to); at = g.Next(at) {
		bounds = append(bounds, at)
	}
	return append(bounds, to)
}
