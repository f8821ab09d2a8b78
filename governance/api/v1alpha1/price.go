package v1alpha1

import (
	"fmt"
	"time"
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
