package index

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// period is the interval in which completed waits and runs are counted
	// together.
	period = 5 * time.Minute
	// retention is how long periods are kept apart.
	retention = 24 * time.Hour
	// undecided is how long a completed wait or run may turn out to belong to a
	// preemption loop.
	undecided = 10 * time.Minute
)

// durations sums completed waits or runs.
type durations struct {
	count        int
	sum, longest time.Duration
	loops        int // excluded, since they belong to preemption loops
}

func (l *durations) add(other durations) {
	l.count += other.count
	l.sum += other.sum
	l.longest = max(l.longest, other.longest)
	l.loops += other.loops
}

// average returns 0 for none.
func (l durations) average() time.Duration {
	if l.count == 0 {
		return 0
	}
	return l.sum / time.Duration(l.count)
}

// endings are the waits or runs that completed since the index started. For each
// period of the last day they keep what had completed before it, and the ones that
// took longer than all later ones.
type endings struct {
	all    durations // its longest without those of recent
	before []checkpoint
	peaks  []peak
	recent []completed // may turn out to belong to a loop; in the order in which they were added
}

// completed is a wait or run of a Workload.
type completed struct {
	part   types.UID
	began  time.Time // by Kueue's conditions, like at
	at     time.Time
	took   time.Duration
	period time.Time // that counts it
}

// checkpoint is what had completed before a period in which something did.
type checkpoint struct {
	period time.Time
	count  int
	sum    time.Duration
	loops  int
}

type peak struct {
	period time.Time
	length time.Duration
}

// add counts one that completed now.
func (e *endings) add(took time.Duration, now time.Time) {
	e.peak(e.current(now), took)
	e.all.add(durations{count: 1, sum: took, longest: took})
}

// addUndecided is add for one that may turn out to belong to a loop.
func (e *endings) addUndecided(some completed, now time.Time) {
	some.period = e.current(now)
	e.settle(now.Add(-undecided))
	e.recent = append(e.recent, some)
	e.all.add(durations{count: 1, sum: some.took})
}

// addLooped counts one that is excluded because it belongs to a loop.
func (e *endings) addLooped(now time.Time) {
	e.current(now)
	e.all.loops++
}

// current returns the period that counts what completes now.
func (e *endings) current(now time.Time) time.Time {
	current := now.Truncate(period)
	if n := len(e.before); n > 0 && !e.before[n-1].period.Before(current) {
		return e.before[n-1].period // also where the clock went back
	}
	e.before = append(e.before, checkpoint{current, e.all.count, e.all.sum, e.all.loops})
	return current
}

// peak records the duration of one that a period counts.
func (e *endings) peak(period time.Time, took time.Duration) {
	i := first(e.peaks, period, peak.at)
	to := i
	if i < len(e.peaks) {
		if e.peaks[i].length >= took {
			return
		}
		if e.peaks[i].period.Equal(period) {
			to++
		}
	}
	for i > 0 && e.peaks[i-1].length <= took {
		i--
	}
	e.peaks = slices.Replace(e.peaks, i, to, peak{period, took})
}

// settle decides that what periods before a moment count belongs to no loop.
func (e *endings) settle(moment time.Time) {
	n := 0
	for n < len(e.recent) && e.recent[n].period.Before(moment) {
		e.peak(e.recent[n].period, e.recent[n].took)
		e.all.longest = max(e.all.longest, e.recent[n].took)
		n++
	}
	e.recent = from(e.recent, n)
}

// exclude removes what turned out to belong to a loop.
func (e *endings) exclude(l *loop) {
	e.recent = slices.DeleteFunc(e.recent, func(some completed) bool {
		if some.part != l.WorkloadUID || !l.Covers(some.began, some.at) {
			return false
		}
		e.all.count, e.all.sum, e.all.loops = e.all.count-1, e.all.sum-some.took, e.all.loops+1
		for i := len(e.before) - 1; i >= 0 && e.before[i].period.After(some.period); i-- {
			m := &e.before[i]
			m.count, m.sum, m.loops = m.count-1, m.sum-some.took, m.loops+1
		}
		return true
	})
}

// total returns what completed since the index started.
func (e *endings) total() durations {
	all := e.all
	for _, some := range e.recent {
		all.longest = max(all.longest, some.took)
	}
	return all
}

// since returns what completed since the begin of a period of the last day.
func (e *endings) since(from time.Time) (found durations) {
	if i := first(e.before, from, checkpoint.at); i < len(e.before) {
		b := e.before[i]
		found.count, found.sum, found.loops = e.all.count-b.count, e.all.sum-b.sum, e.all.loops-b.loops
	}
	if i := first(e.peaks, from, peak.at); i < len(e.peaks) {
		found.longest = e.peaks[i].length
	}
	for _, some := range e.recent {
		if !some.period.Before(from) {
			found.longest = max(found.longest, some.took)
		}
	}
	return found
}

// forget drops periods before a moment.
func (e *endings) forget(moment time.Time) {
	e.settle(moment)
	e.before = from(e.before, first(e.before, moment, checkpoint.at))
	e.peaks = from(e.peaks, first(e.peaks, moment, peak.at))
}

func (m checkpoint) at() time.Time { return m.period }

func (p peak) at() time.Time { return p.period }

// first returns the index of the first element that is not before a moment, in a
// list sorted by time.
func first[T any](list []T, moment time.Time, at func(T) time.Time) int {
	n, _ := slices.BinarySearchFunc(list, moment, func(item T, moment time.Time) int { return at(item).Compare(moment) })
	return n
}

// from returns list without its first n elements, and without their memory.
func from[T any](list []T, n int) []T {
	switch n {
	case 0:
		return list
	case len(list):
		return nil
	}
	return slices.Clone(list[n:])
}

// dropOld drops the periods older than a day from all tallies, once in a period:
// also where nothing completes any more.
func (x *Index) dropOld(now time.Time) {
	oldest := now.Add(-retention).Truncate(period)
	if !oldest.After(x.oldestPeriod) {
		return
	}
	x.oldestPeriod = oldest
	for _, y := range x.classes {
		y.waits.forget(oldest)
		y.runs.forget(oldest)
	}
}

// beginOf returns when figures over a duration begin: with a period, and not before
// the index started; 0 is since then.
func (x *Index) beginOf(now time.Time, within time.Duration) time.Time {
	if within <= 0 {
		return x.started
	}
	begin := now.Add(-min(within, retention)).Truncate(period)
	return slices.MaxFunc([]time.Time{begin, x.started}, time.Time.Compare)
}

// endedSince returns what completed of a tally since a time that beginOf returned.
func (x *Index) endedSince(begin time.Time, e *endings) durations {
	if begin.Equal(x.started) {
		return e.total()
	}
	return e.since(begin)
}
