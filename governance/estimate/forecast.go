package estimate

import (
	"math"
	"slices"
	"time"
)

// Forecast is what the simulations of one task have in common.
type Forecast struct {
	Middle time.Duration // the median of the starts, from the forecast on
	// Spread is half of the distance between the quantiles 0.1 and 0.9 of the starts,
	// on the scale of toScale.
	Spread float64
}

// Range is when a task probably starts: with a probability of Coverage, between
// the two.
type Range struct{ Low, High time.Duration }

// Coverage is the share of starts that ranges are to contain.
const Coverage = 0.8

// resolution is the time below which differences matter little: waits are compared
// on a scale that is linear below it and logarithmic above it.
const resolution = 5 * time.Minute

// minSpread is the least Spread, about a tenth of the wait: simulations can agree.
const minSpread = 0.1

func toScale(d time.Duration) float64 { return math.Log1p(max(0, d).Seconds() / resolution.Seconds()) }

func fromScale(x float64) time.Duration {
	return time.Duration(min(resolution.Seconds()*math.Expm1(min(max(0, x), 30)), maxWait.Seconds()) * float64(time.Second))
}

// maxWait bounds ranges.
const maxWait = 365 * 24 * time.Hour

// NewForecast returns the forecast of the starts of one task in several
// simulations; never is the start of those in which it does not start. ok is false
// if it does not start in half of them.
func NewForecast(starts []time.Duration, never time.Duration) (f Forecast, ok bool) {
	sorted := slices.Sorted(slices.Values(starts))
	n := len(sorted)
	if n == 0 || sorted[n/2] == never {
		return Forecast{}, false
	}
	low, high := n/10, n-1-n/10
	for sorted[high] == never { // the later half is as wide as those that are known
		high--
	}
	f.Middle = sorted[n/2]
	f.Spread = max(minSpread, (toScale(sorted[high])-toScale(sorted[low]))/2)
	return f, true
}

// score returns how far a wait is from the middle, in spreads.
func (f Forecast) score(wait time.Duration) float64 {
	return (toScale(wait) - toScale(f.Middle)) / f.Spread
}

// at is the inverse of score.
func (f Forecast) at(score float64) time.Duration {
	return fromScale(toScale(f.Middle) + score*f.Spread)
}
