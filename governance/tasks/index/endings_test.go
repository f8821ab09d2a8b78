package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
)

// lifecycle is one task of the test. Its times are zero until they are reached.
type lifecycle struct {
	namespace, name, class    string
	created, admitted, ended  time.Time
	waitSeenEnded, runSeenEnd time.Time // when the index received the end
}

// step creates a task, or admits or finishes one at random.
func step(x *Index, c *taskstest.Clock, all []*lifecycle, random *rand.Rand) []*lifecycle {
	var l *lifecycle
	if len(all) > 0 && random.IntN(3) > 0 {
		l = all[random.IntN(len(all))]
	}
	if l == nil || !l.ended.IsZero() {
		n := len(all)
		l = &lifecycle{namespace: fmt.Sprintf("ns-%d", n%3), name: fmt.Sprintf("t-%d", n), class: []string{"", "a", "b"}[random.IntN(3)], created: c.At}
		x.SetWorkload(taskstest.Workload(l.namespace, l.name, l.class, 1, l.created, taskstest.Pending(l.created)...), false)
		return append(all, l)
	}
	late := time.Duration(random.IntN(3)) * time.Second // until the index receives the change
	conditions := taskstest.Admitted(c.At)
	if l.admitted.IsZero() {
		l.admitted = c.At
		c.At = c.At.Add(late)
		l.waitSeenEnded = c.At
	} else {
		l.ended = c.At
		conditions = taskstest.Finished(l.admitted, l.ended)
		c.At = c.At.Add(late)
		l.runSeenEnd = c.At
	}
	x.SetWorkload(taskstest.Workload(l.namespace, l.name, l.class, 1, l.created, conditions...), false)
	return all
}

// The figures of a time range equal those of a plain list of all ended waits and
// runs, from the time on that the index returns. A day after its last change a
// priority class keeps no periods.
func TestPriorityClassesInATimeRange(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		x, c := newTestIndex()
		var all []*lifecycle
		for range 600 {
			c.At = c.At.Add(time.Duration(random.IntN(900)) * time.Second)
			if random.IntN(60) == 0 {
				c.At = c.At.Add(time.Duration(random.IntN(30)) * time.Hour)
			}
			all = step(x, c, all, random)
			checkRanges(t, x, c, all)
			if t.Failed() {
				t.Fatalf("seed %d, %d tasks, at %s", seed, len(all), c.At)
			}
		}
		c.At = c.At.Add(25 * time.Hour)
		x.Classes(func(tasks.Place) bool { return false }, 0)
		for key, y := range x.classes {
			if y.waits.periods != nil || y.runs.periods != nil {
				t.Errorf("a day after its last change %v still has %+v and %+v", key, y.waits, y.runs)
			}
		}
	}
}

func checkRanges(t *testing.T, x *Index, c *taskstest.Clock, all []*lifecycle) {
	t.Helper()
	in := func(p tasks.Place) bool { return p.Namespace != "ns-1" }
	for _, within := range []time.Duration{0, time.Hour, 12 * time.Hour, 24 * time.Hour} {
		rows, since := x.Classes(in, within)
		if wanted := c.At.Add(-within); since.Before(taskstest.Start) || within > 0 && (since.After(wanted) && !since.Equal(taskstest.Start) || since.Before(wanted.Add(-period))) || within == 0 && !since.Equal(taskstest.Start) {
			t.Errorf("at %s the range of %s begins at %s", c.At, within, since)
		}
		for _, row := range rows {
			var waited, ran durations
			longestWait, longestRun := time.Duration(0), time.Duration(0)
			for _, l := range all {
				if l.class != row.PriorityClass || l.namespace == "ns-1" {
					continue
				}
				switch {
				case l.admitted.IsZero():
					longestWait = max(longestWait, c.At.Sub(l.created))
				case !l.waitSeenEnded.Before(since):
					took := l.admitted.Sub(l.created)
					waited.add(durations{count: 1, sum: took, longest: took})
				}
				switch {
				case !l.admitted.IsZero() && l.ended.IsZero():
					longestRun = max(longestRun, c.At.Sub(l.admitted))
				case !l.ended.IsZero() && !l.runSeenEnd.Before(since):
					took := l.ended.Sub(l.admitted)
					ran.add(durations{count: 1, sum: took, longest: took})
				}
			}
			if row.Waits != waited.count || row.AverageWait != waited.average() || row.LongestWait != max(longestWait, waited.longest) || row.WaitGoesOn != (longestWait > waited.longest) {
				t.Errorf("waits of priority class %q within %s: got %+v, want %+v and %s", row.PriorityClass, within, row, waited, longestWait)
			}
			if row.Runs != ran.count || row.AverageRun != ran.average() || row.LongestRun != max(longestRun, ran.longest) || row.RunGoesOn != (longestRun > ran.longest) {
				t.Errorf("runs of priority class %q within %s: got %+v, want %+v and %s", row.PriorityClass, within, row, ran, longestRun)
			}
		}
		everywhere, _ := x.Classes(nil, within)
		inAll, _ := x.Classes(func(tasks.Place) bool { return true }, within)
		if diff := cmp.Diff(inAll, everywhere); diff != "" {
			t.Errorf("all places within %s (-one by one +together):\n%s", within, diff)
		}
		if len(all) > 20 && len(rows) != 3 {
			t.Errorf("got %d priority classes, want 3", len(rows))
		}
	}
	for key, y := range x.classes {
		for _, e := range []endings{y.waits, y.runs} {
			if len(e.periods) > 0 && e.periods[0].begin.Before(c.At.Add(-retention-period)) || len(e.periods) > int(retention/period)+1 {
				t.Errorf("%v keeps %+v, more than a day of periods", key, e)
			}
		}
	}
}

// BenchmarkClassesOfADay measures the worst case: in each priority class of a
// thousand teams a wait and a run ended in every period of a day.
func BenchmarkClassesOfADay(b *testing.B) {
	x, c := newTestIndex()
	for i := range 3000 {
		y := x.talliesOf(&tasks.Task{Namespace: fmt.Sprint(i / 3), PriorityClass: fmt.Sprint(i % 3)})[0]
		for n := range int(retention / period) {
			now := taskstest.Start.Add(time.Duration(n) * period)
			y.waits.add(time.Hour, now)
			y.runs.add(time.Hour, now)
		}
	}
	c.At = taskstest.Start.Add(retention)
	x.started = taskstest.Start.Add(-time.Hour)
	for b.Loop() {
		x.Classes(func(tasks.Place) bool { return true }, retention)
	}
}
