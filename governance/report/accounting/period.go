package accounting

import "time"

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
