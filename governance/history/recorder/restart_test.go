package recorder_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/history/historytest"
)

// ran waits until a team's spans in a class are these, and no more.
func (l *lab) ran(class string, from time.Time, waits, runs int64) {
	l.t.Helper()
	l.eventually(func() error {
		sums, err := l.store.ClassStats(l.t.Context(), nil, from, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(sums, func(s history.ClassStats) bool { return s.Class == class })
		if i < 0 || sums[i].Waits != waits || sums[i].Runs != runs {
			return fmt.Errorf("of %s there are %+v", class, sums)
		}
		return nil
	})
}

// A console that ends, and comes back while tasks ran, ended and went, counts
// nothing twice, and has the time between as a gap.
func TestRestart(t *testing.T) {
	l := newLab(t)
	l.node("", 8)
	class := l.class(50)
	team := l.team("vision", 8)
	began := time.Now().Add(-time.Second)
	l.start(l.store, nil)
	from := time.Now()
	l.job(team, "short", 1, class, "1s")
	l.job(team, "long", 2, class, "1h")
	l.job(team, "away", 1, class, "1h")
	l.ran(class, began, 3, 1)
	l.stop()
	before, err := l.store.SampledUntil(t.Context())
	if err != nil || before.IsZero() {
		t.Fatalf("it has seen until %s (%v)", before, err)
	}
	l.kubectl("delete", "job", "away", "-n", space(team), "--cascade=foreground") // its Workload, too, is gone when the console comes back
	l.job(team, "meanwhile", 1, class, "1s")
	l.kubectl("wait", "job/meanwhile", "-n", space(team), "--for=condition=Complete", "--timeout=30s")

	for range 2 { // twice the same
		l.start(l.store, nil)
		l.ran(class, began, 4, 2)
		l.stop()
	}
	gone, _, err := l.life(team, "away")
	if err != nil || gone.DeletedAt.IsZero() || gone.Team != team {
		t.Errorf("what went meanwhile is %+v (%v)", gone, err)
	}
	there, steps, err := l.life(team, "long")
	if err != nil || !there.DeletedAt.IsZero() || !there.FinishedAt.IsZero() || len(steps) == 0 {
		t.Errorf("what runs on is %+v with %+v (%v)", there, steps, err)
	}
	gaps, err := l.store.Gaps(t.Context(), began, time.Now())
	if err != nil || len(gaps) == 0 || !gaps[0].From.Equal(before) || !strings.Contains(gaps[0].Reason, "was not running") {
		t.Errorf("gaps are %+v; it had seen until %s (%v)", gaps, before, err)
	}
	l.addsUp(catalog.GPU, from, before)
}

// While the database is away all goes on, and what happens meanwhile is written
// afterwards, without a gap.
func TestDatabaseAway(t *testing.T) {
	l := newLab(t)
	server := historytest.Start(t)
	store, err := history.Open(t.Context(), server.Database(t), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l.store = store
	l.node("", 8)
	class := l.class(50)
	team := l.team("vision", 8)
	began := time.Now().Add(-time.Second)
	l.start(store, nil)
	from := time.Now()
	l.job(team, "first", 2, class, "1s")
	l.ran(class, began, 1, 1)

	server.Stop(t)
	l.job(team, "second", 3, class, "1s")
	l.kubectl("wait", "job/second", "-n", space(team), "--for=condition=Complete", "--timeout=30s")
	l.kubectl("delete", "job", "second", "-n", space(team), "--cascade=foreground")
	l.eventually(func() error {
		if s := l.recorder.State(); s.LastError == "" || s.Pending == 0 {
			return fmt.Errorf("it says %+v", s)
		}
		if pool, err := l.gpus(); err != nil || pool.Usage != 0 {
			return fmt.Errorf("%d are held (%w)", pool.Usage, err)
		}
		return nil
	})
	server.Restart(t)
	l.ran(class, began, 2, 2)
	to := time.Now()
	l.eventually(func() error {
		if s := l.recorder.State(); s.LastError != "" || s.WrittenUntil.Before(to) {
			return fmt.Errorf("it says %+v", s)
		}
		return nil
	})
	if gaps, err := store.Gaps(t.Context(), from, to); err != nil || len(gaps) > 0 {
		t.Errorf("gaps are %+v (%v)", gaps, err)
	}
	l.addsUp(catalog.GPU, from, to)
	l.eventually(func() error {
		if gone, _, err := l.life(team, "second"); err != nil || gone.DeletedAt.IsZero() {
			return fmt.Errorf("what ran meanwhile is %+v (%w)", gone, err)
		}
		return nil
	})
}

// A time in which the API server does not answer is a gap, and so is one that the
// machine's clock leaps over.
func TestBlind(t *testing.T) {
	l := newLab(t)
	l.node("", 8)
	l.team("vision", 8)
	var ahead atomic.Int64
	l.start(l.store, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	from := time.Now()
	gap := func(why string) (found history.Gap) {
		t.Helper()
		l.eventually(func() error {
			gaps, err := l.store.Gaps(t.Context(), from, from.Add(24*time.Hour))
			for _, g := range gaps {
				if strings.Contains(g.Reason, why) {
					found = g
					return nil
				}
			}
			return fmt.Errorf("there is no gap since it %s: %+v (%w)", why, gaps, err)
		})
		return found
	}
	var stopped, back time.Time
	l.c.Without(t, func() {
		stopped = time.Now()
		l.eventually(func() error {
			if age, ok := l.contact.Age(time.Now()); ok {
				return fmt.Errorf("it answered %s ago", age)
			}
			return nil
		})
		back = time.Now()
	})
	if g := gap("did not answer"); g.From.After(stopped) || g.From.Before(stopped.Add(-5*time.Second)) || g.To.Before(back) {
		t.Errorf("it was away from %s to %s at least; the gap is %+v", stopped, back, g)
	}
	ahead.Store(int64(time.Hour))
	leapt := gap("set forward")
	if g := leapt; g.To.Sub(g.From) < 50*time.Minute || g.To.Sub(g.From) > 70*time.Minute {
		t.Errorf("the gap is %+v", g)
	}
	ahead.Store(0)
	var written time.Time
	l.eventually(func() error {
		if written = l.recorder.State().WrittenUntil; !written.After(leapt.To.Add(time.Second)) {
			return fmt.Errorf("after the clock was put back it says %+v", l.recorder.State())
		}
		return nil
	})
	l.addsUp(catalog.GPU, from, written)
}
