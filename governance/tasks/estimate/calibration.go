package estimate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Past is an estimate that was made.
type Past struct {
	Team, Class string
	Made        time.Time
	Forecast    time.Duration // the wait from Made on
	Range
	Started time.Time // zero while the task waits
}

// Held reports whether the task started within the range.
func (p *Past) Held() bool {
	wait := p.Started.Sub(p.Made)
	return p.Low <= wait && wait <= p.High
}

// Calibration is how past forecasts erred. Its methods are safe for concurrent use.
type Calibration struct {
	groups map[group]*misses
}

type group struct{ team, class string }

// miss is by how much a forecast erred, on the scale of waits.
type miss struct{ forecast, error float64 }

// misses are the latest misses of one group, the oldest first.
type misses struct {
	all       []miss
	low, high float64 // which parts of the errors a range leaves out below and above
}

const (
	// window is how many estimates of a group count, the latest ones.
	window = 400
	// similar is how many of these decide about a range: those with the most similar
	// forecasts.
	similar = 100
	// minEstimates is of how many estimates a group consists at least.
	minEstimates = 50
	// adaptation is how much each estimate that did not hold widens the next ranges of
	// its group.
	adaptation = 0.01
	// nominal is which part of the starts may be before a range, and which after it.
	nominal = (1 - Coverage) / 2
)

// uncalibrated is how far the ends of a range are from the forecast as long as too few
// estimates are known.
const uncalibrated = 0.5

// Calibrate returns how estimates erred, as known now.
func Calibrate(past []Past, now time.Time) *Calibration {
	type outcome struct {
		group
		known time.Time
		miss
		below, over bool
	}
	var outcomes []outcome
	for _, p := range past {
		known, waited := p.Started, p.Started.Sub(p.Made)
		if p.Started.IsZero() {
			// It counts as soon as it is known to be too late.
			if waited = now.Sub(p.Made); waited <= p.High {
				continue
			}
			known = p.Made.Add(p.High)
		}
		if p.Made.After(now) || known.After(now) {
			continue
		}
		outcomes = append(outcomes, outcome{group{p.Team, p.Class}, known, miss{toScale(p.Forecast), toScale(waited) - toScale(p.Forecast)}, waited < p.Low, waited > p.High})
	}
	slices.SortStableFunc(outcomes, func(a, b outcome) int { return a.known.Compare(b.known) })
	c := &Calibration{groups: map[group]*misses{}}
	for _, o := range outcomes {
		for _, g := range errorGroups(o.group) {
			e := c.groups[g]
			if e == nil {
				e = &misses{low: nominal, high: nominal}
				c.groups[g] = e
			}
			e.all = append(e.all, o.miss)
			e.low = adapted(e.low, o.below)
			e.high = adapted(e.high, o.over)
		}
	}
	for _, e := range c.groups {
		e.all = e.all[max(0, len(e.all)-window):]
	}
	return c
}

// adapted follows adaptive conformal inference: in the long run, the part nominal of
// the starts is missed, whatever the load does.
func adapted(part float64, missed bool) float64 {
	if missed {
		part -= adaptation * (1 - nominal)
	} else {
		part += adaptation * nominal
	}
	return min(max(part, 0.005), 0.3)
}

// errorGroups returns the groups of an estimate, the finest first.
func errorGroups(g group) []group { return []group{g, {class: g.class}, {}} }

// Range returns when a task with a forecast probably starts.
func (c *Calibration) Range(team, class string, forecast time.Duration) Range {
	at, low, high := toScale(forecast), -float64(uncalibrated), float64(uncalibrated)
	for _, g := range errorGroups(group{team, class}) {
		if e := c.groups[g]; e != nil && len(e.all) >= minEstimates {
			low, high = e.ends(at)
			break
		}
	}
	return Range{Low: fromScale(at + low), High: fromScale(at + high)}
}

// ends returns how far both ends of a range are from a forecast.
func (m *misses) ends(forecast float64) (low, high float64) {
	nearest := slices.Clone(m.all)
	slices.SortStableFunc(nearest, func(a, b miss) int {
		return cmp.Compare(math.Abs(a.forecast-forecast), math.Abs(b.forecast-forecast))
	})
	var errors []float64
	for _, one := range nearest[:min(similar, len(nearest))] {
		errors = append(errors, one.error)
	}
	slices.Sort(errors)
	return quantile(errors, m.low), quantile(errors, 1-m.high)
}

// quantile returns a quantile of sorted values, the outer one of two neighbors.
func quantile(sorted []float64, part float64) float64 {
	at := part*float64(len(sorted)+1) - 1
	i := int(math.Floor(at))
	if part > 0.5 {
		i = int(math.Ceil(at))
	}
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Record is how many of past estimates held.
type Record struct{ Held, Of int }

// RecordOf counts the estimates that are known to have held or not.
func RecordOf(past []Past, now time.Time) (r Record) {
	for _, p := range past {
		switch {
		case !p.Started.IsZero() && p.Held():
			r.Held++
			r.Of++
		case !p.Started.IsZero() || now.Sub(p.Made) > p.High:
			r.Of++
		}
	}
	return r
}

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
