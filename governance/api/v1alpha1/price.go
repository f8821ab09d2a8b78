package v1alpha1

import (
	"fmt"
	"regexp"
	"time"
)

var (
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	pricePattern    = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,6})?$`)
)

// Time returns the time from which the price holds.
func (p *HourlyPrice) Time() (time.Time, error) {
	layout := time.DateOnly
	if len(p.From) > len(layout) {
		layout = "2006-01-02T15:04:05Z"
	}
	at, err := time.Parse(layout, p.From)
	if err == nil && (at.Year() < 2000 || at.Year() > 8999) {
		err = fmt.Errorf("the year of %s is not from 2000 to 8999", p.From)
	}
	return at, err
}

// Problem returns a phrase about an invalid value; empty for none.
func (p *HourlyPrice) Problem() string {
	_, err := p.Time()
	switch {
	case p.Pool == "" || len(p.Pool) > MaxLabelValue:
		return fmt.Sprintf("name a pool, with up to %d characters", MaxLabelValue)
	case p.Resource == "" || len(p.Resource) > MaxResourceName:
		return "name a resource, such as nvidia.com/gpu"
	case err != nil:
		return "write the beginning as 2026-10-01 or 2026-10-01T12:00:00Z, in UTC"
	case !pricePattern.MatchString(p.Own) || p.Borrowed != "" && !pricePattern.MatchString(p.Borrowed):
		return "write prices as 2.50, with up to six decimals"
	}
	return ""
}

// Problems returns phrases about all invalid values, by the index of the price; -1 for the
// currency and for the number of prices.
func (p *Prices) Problems() map[int]string {
	problems := map[int]string{}
	switch {
	case p == nil:
		return nil
	case !currencyPattern.MatchString(p.Currency):
		problems[-1] = "write the currency as three capital letters, such as EUR"
	case len(p.Hourly) > MaxPrices:
		problems[-1] = fmt.Sprintf("these are %d prices; a policy has at most %d", len(p.Hourly), MaxPrices)
	}
	seen := map[HourlyPrice]bool{}
	for i := range p.Hourly {
		price := &p.Hourly[i]
		key := HourlyPrice{Pool: price.Pool, Resource: price.Resource, From: price.From}
		if problem := price.Problem(); problem != "" {
			problems[i] = problem
		} else if seen[key] {
			problems[i] = "this pool and resource have another price from the same time"
		}
		seen[key] = true
	}
	return problems
}
