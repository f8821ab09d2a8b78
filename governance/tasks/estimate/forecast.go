package estimate

import (
	"math"
	"slices"
	"time"
)

// Range is when a task probably starts: with a probability of Coverage, between
// the two.
type Range struct{ Low, High time.Duration }

// Coverage is the share of starts that ranges are to contain.
const Coverage = 0.8

// resolution is the wait below which errors are compared by their length, and above
// which they are compared with the wait.
const resolution = time.Hour

// maxWait bounds ranges.
const maxWait = 365 * 24 * time.Hour

// toScale returns a wait on a scale that is linear below resolution and logarithmic
// above it.
func toScale(d time.Duration) float64 { return math.Log1p(max(0, d).Seconds() / resolution.Seconds()) }

// fromScale is the inverse of toScale.
func fromScale(x float64) time.Duration {
	seconds := resolution.Seconds() * math.Expm1(min(max(0, x), 30))
	return time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
}

// Forecast returns the median of the starts of one task in several simulations; never
// is the start of those in which it does not start. ok is false if it does not start
// in half of them.
func Forecast(starts []time.Duration, never time.Duration) (middle time.Duration, ok bool) {
	if len(starts) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(starts))
	middle = sorted[len(sorted)/2]
	return middle, middle != never
}
