package tasks

import (
	"slices"
	"time"
)

const (
	// period is for how long what ended is counted as ended together.
	period = 5 * time.Minute
	// memory is for how long periods are told apart.
	memory = 24 * time.Hour
)

// lengths are how long something took, each time that it ended.
type lengths struct {
	count        int
	sum, longest time.Duration
}

func (l *lengths) add(other lengths) {
	l.count += other.count
	l.sum += other.sum
	l.longest = max(l.longest, other.longest)
}

// average is 0 for none.
func (l lengths) average() time.Duration {
	if l.count == 0 {
		return 0
	}
	return l.sum / time.Duration(l.count)
}

// endings are what ended since the index began. Of the last day they know it from
// each period on, at no more cost than what ended: what had ended before a
// period, and those that took longer than all after them.
type endings struct {
	all    lengths
	before []mark
	peaks  []peak
}

// mark is what had ended before a period in which something did.
type mark struct {
	period time.Time
	count  int
	sum    time.Duration
}

type peak struct {
	period time.Time
	length time.Duration
}

// add counts what took some time and ended now.
func (e *endings) add(took time.Duration, now time.Time) {
	current := now.Truncate(period)
	if n := len(e.before); n == 0 || e.before[n-1].period.Before(current) {
		e.before = append(e.before, mark{current, e.all.count, e.all.sum})
	} else {
		current = e.before[n-1].period // also where the clock was put back
	}
	n := len(e.peaks)
	for n > 0 && e.peaks[n-1].length <= took {
		n--
	}
	if e.peaks = e.peaks[:n]; n == 0 || e.peaks[n-1].period.Before(current) {
		e.peaks = append(e.peaks, peak{current, took})
	}
	e.all.add(lengths{1, took, took})
}

// since is what ended from the begin of a period of the last day on.
func (e *endings) since(from time.Time) (found lengths) {
	if i := first(e.before, from, mark.at); i < len(e.before) {
		found.count, found.sum = e.all.count-e.before[i].count, e.all.sum-e.before[i].sum
	}
	if i := first(e.peaks, from, peak.at); i < len(e.peaks) {
		found.longest = e.peaks[i].length
	}
	return found
}

// forget drops periods before a moment.
func (e *endings) forget(moment time.Time) {
	e.before = from(e.before, first(e.before, moment, mark.at))
	e.peaks = from(e.peaks, first(e.peaks, moment, peak.at))
}

func (m mark) at() time.Time { return m.period }
func (p peak) at() time.Time { return p.period }

// first is the place of the first in a list by time that is not before a moment.
func first[T any](list []T, moment time.Time, at func(T) time.Time) int {
	n, _ := slices.BinarySearchFunc(list, moment, func(item T, moment time.Time) int { return at(item).Compare(moment) })
	return n
}

// from is a list without its first ones, and without the memory that they took.
func from[T any](list []T, n int) []T {
	switch n {
	case 0:
		return list
	case len(list):
		return nil
	}
	return slices.Clone(list[n:])
}

// dropOld drops the periods that are older than a day, of all tallies once in a
// period: those too in which nothing ends any more.
func (x *Index) dropOld(now time.Time) {
	oldest := now.Add(-memory).Truncate(period)
	if !oldest.After(x.oldest) {
		return
	}
	x.oldest = oldest
	for _, y := range x.classes {
		y.waits.forget(oldest)
		y.runs.forget(oldest)
	}
}

// begin is when figures over a length of time begin: with a period, and not
// before the index did; 0 is since then.
func (x *Index) begin(now time.Time, within time.Duration) time.Time {
	if within <= 0 {
		return x.started
	}
	begin := now.Add(-min(within, memory)).Truncate(period)
	return slices.MaxFunc([]time.Time{begin, x.started}, time.Time.Compare)
}

// endedSince is what ended of a tally since a moment that begin returned.
func (x *Index) endedSince(begin time.Time, e *endings) lengths {
	if begin.Equal(x.started) {
		return e.all
	}
	return e.since(begin)
}
