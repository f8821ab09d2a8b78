package recorder_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"
)

// waitForSpans waits until exactly this number of waits and runs is recorded.
func (l *lab) waitForSpans(class string, from time.Time, waits, runs int64) {
	l.t.Helper()
	l.eventually(func() error {
		sums, err := l.store.ClassStats(l.t.Context(), nil, from, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(sums, func(s history.ClassStats) bool { return s.Class == class })
		if i < 0 || sums[i].Waits != waits || sums[i].Runs != runs {
			return fmt.Errorf("statistics of %s: %+v", class, sums)
		}
		return nil
	})
}

// A console that restarts counts nothing twice, records tasks that finished or were
// deleted in the meantime, and records that time as a gap.
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
	l.waitForSpans(class, began, 3, 1)
	l.stop()
	before, err := l.store.SampledUntil(t.Context())
	if err != nil || before.IsZero() {
		t.Fatalf("SampledUntil is %s (%v)", before, err)
	}
	l.kubectl("delete", "job", "away", "-n", space(team), "--cascade=foreground") // its Workload is deleted too when the console restarts
	l.job(team, "meanwhile", 1, class, "1s")
	l.kubectl("wait", "job/meanwhile", "-n", space(team), "--for=condition=Complete", "--timeout=180s")

	for range 2 {
		l.start(l.store, nil)
		l.waitForSpans(class, began, 4, 2)
		l.stop()
	}
	deleted, _, err := l.timeline(team, "away")
	if err != nil || deleted.DeletedAt.IsZero() || deleted.Team != team {
		t.Errorf("the task that was deleted in the meantime is %+v (%v)", deleted, err)
	}
	running, events, err := l.timeline(team, "long")
	if err != nil || !running.DeletedAt.IsZero() || !running.FinishedAt.IsZero() || len(events) == 0 {
		t.Errorf("the running task is %+v with %+v (%v)", running, events, err)
	}
	gaps, err := l.store.Gaps(t.Context(), began, time.Now())
	if err != nil || len(gaps) == 0 || !gaps[0].From.Equal(before) || !strings.Contains(gaps[0].Reason, "was not running") {
		t.Errorf("gaps are %+v, SampledUntil was %s (%v)", gaps, before, err)
	}
	l.checkSum(catalog.GPU, from, before)
}

// While the database is unreachable recording continues, and everything is written
// afterwards, without a gap.
func TestDatabaseUnreachable(t *testing.T) {
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
	l.waitForSpans(class, began, 1, 1)

	server.Stop(t)
	l.job(team, "second", 3, class, "1s")
	l.kubectl("wait", "job/second", "-n", space(team), "--for=condition=Complete", "--timeout=180s")
	l.kubectl("delete", "job", "second", "-n", space(team), "--cascade=foreground")
	l.eventually(func() error {
		if s := l.recorder.State(); s.LastError == "" || s.Pending == 0 {
			return fmt.Errorf("state is %+v", s)
		}
		if pool, err := l.gpus(); err != nil || pool.Usage != 0 {
			return fmt.Errorf("usage is %d (%w)", pool.Usage, err)
		}
		return nil
	})
	server.Restart(t)
	l.waitForSpans(class, began, 2, 2)
	to := time.Now()
	l.eventually(func() error {
		if s := l.recorder.State(); s.LastError != "" || s.WrittenUntil.Before(to) {
			return fmt.Errorf("state is %+v", s)
		}
		return nil
	})
	if gaps, err := store.Gaps(t.Context(), from, to); err != nil || len(gaps) > 0 {
		t.Errorf("gaps are %+v (%v)", gaps, err)
	}
	l.checkSum(catalog.GPU, from, to)
	l.eventually(func() error {
		if task, _, err := l.timeline(team, "second"); err != nil || task.DeletedAt.IsZero() {
			return fmt.Errorf("the task that ran in the meantime is %+v (%w)", task, err)
		}
		return nil
	})
}

// The time in which the API server does not answer is a gap, and so is the time that
// the system clock skips.
func TestUnobservedTimeIsGap(t *testing.T) {
	l := newLab(t)
	l.node("", 8)
	l.team("vision", 8)
	var ahead atomic.Int64
	l.start(l.store, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	from := time.Now()
	gap := func(reason string) (found history.Gap) {
		t.Helper()
		l.eventually(func() error {
			gaps, err := l.store.Gaps(t.Context(), from, from.Add(24*time.Hour))
			for _, g := range gaps {
				if strings.Contains(g.Reason, reason) {
					found = g
					return nil
				}
			}
			return fmt.Errorf("no gap with reason %q: %+v (%w)", reason, gaps, err)
		})
		return found
	}
	var stopped, back time.Time
	l.c.Without(t, func() {
		stopped = time.Now()
		l.eventually(func() error {
			if age, ok := l.contact.Age(time.Now()); ok {
				return fmt.Errorf("the API server answered %s ago", age)
			}
			return nil
		})
		back = time.Now()
	})
	if g := gap("did not answer"); g.From.After(stopped) || g.From.Before(stopped.Add(-5*time.Second)) || g.To.Before(back) {
		t.Errorf("the API server was stopped from %s to %s at least; the gap is %+v", stopped, back, g)
	}
	ahead.Store(int64(time.Hour))
	leap := gap("set forward")
	if g := leap; g.To.Sub(g.From) < 50*time.Minute || g.To.Sub(g.From) > 70*time.Minute {
		t.Errorf("the gap is %+v", g)
	}
	ahead.Store(0)
	var written time.Time
	l.eventually(func() error {
		if written = l.recorder.State().WrittenUntil; !written.After(leap.To.Add(time.Second)) {
			return fmt.Errorf("after the clock was set back the state is %+v", l.recorder.State())
		}
		return nil
	})
	l.checkSum(catalog.GPU, from, written)
}
