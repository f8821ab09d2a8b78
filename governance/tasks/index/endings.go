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

// endings are the waits or runs that completed since the index started: all, and those
// of each period of the last day.
type endings struct {
	all     durations   // its longest without those of recent
	periods []periodSum // in which something completed, the oldest first
	recent  []completed // may turn out to belong to a loop; in the order in which they were added
}

// completed is a wait or run of a Workload.
type completed struct {
	part   types.UID
	began  time.Time // by Kueue's conditions, like at
	at     time.Time
	took   time.Duration
	period time.Time // that counts it
}

// periodSum is what completed in a period; its longest without those of endings.recent.
type periodSum struct {
	begin time.Time
	durations
}

// add counts one that completed now.
func (e *endings) add(took time.Duration, now time.Time) {
	e.count(durations{count: 1, sum: took, longest: took}, now)
}

// addUndecided is add for one that may turn out to belong to a loop.
func (e *endings) addUndecided(some completed, now time.Time) {
	some.period = e.count(durations{count: 1, sum: some.took}, now)
	e.settle(now.Add(-undecided))
	e.recent = append(e.recent, some)
}

// addLooped counts one that is excluded because it belongs to a loop.
func (e *endings) addLooped(now time.Time) { e.count(durations{loops: 1}, now) }

// count counts what completes now, and returns the begin of the period that does.
func (e *endings) count(some durations, now time.Time) time.Time {
	begin := now.Truncate(period)
	if n := len(e.periods); n == 0 || e.periods[n-1].begin.Before(begin) { // not where the clock went back
		e.periods = append(e.periods, periodSum{begin: begin})
	}
	last := &e.periods[len(e.periods)-1]
	last.add(some)
	e.all.add(some)
	return last.begin
}

// from returns the index of the first period that does not begin before a moment.
func (e *endings) from(moment time.Time) int {
	n, _ := slices.BinarySearchFunc(e.periods, moment, func(p periodSum, moment time.Time) int { return p.begin.Compare(moment) })
	return n
}

// correct adds to what the period of a recent one counts.
func (e *endings) correct(of completed, by durations) {
	e.all.add(by)
	e.periods[e.from(of.period)].add(by)
}

// settle decides that what periods before a moment count belongs to no loop.
func (e *endings) settle(moment time.Time) {
	n := 0
	for ; n < len(e.recent) && e.recent[n].period.Before(moment); n++ {
		e.correct(e.recent[n], durations{longest: e.recent[n].took})
	}
	e.recent = from(e.recent, n)
}

// exclude removes what turned out to belong to a loop.
func (e *endings) exclude(l *loop) {
	e.recent = slices.DeleteFunc(e.recent, func(some completed) bool {
		looped := some.part == l.WorkloadUID && l.Covers(some.began, some.at)
		if looped {
			e.correct(some, durations{count: -1, sum: -some.took, loops: 1})
		}
		return looped
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
func (e *endings) since(begin time.Time) (found durations) {
	for _, p := range e.periods[e.from(begin):] {
		found.add(p.durations)
	}
	for _, some := range e.recent {
		if !some.period.Before(begin) {
			found.longest = max(found.longest, some.took)
		}
	}
	return found
}

// forget drops periods before a moment.
func (e *endings) forget(moment time.Time) {
	e.settle(moment)
	e.periods = from(e.periods, e.from(moment))
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
	forget := func(y *tally) {
		y.waits.forget(oldest)
		y.runs.forget(oldest)
	}
	for _, y := range x.classes {
		forget(y)
	}
	for _, y := range x.everywhere {
		forget(y)
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
