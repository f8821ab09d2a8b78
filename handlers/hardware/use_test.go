package hardware

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/observe/utilization"
)

// A task is idle since the console saw it idle, or for as long as a reading has peaks.
func TestIdleTasks(t *testing.T) {
	h, b := busySample()
	now, first := busyNow, b.state.Reading.At
	h.Now = func() time.Time { return now }
	pass := func(d time.Duration) {
		now = now.Add(d)
		next := *b.state.Reading
		next.At = now
		b.state.Reading = &next
	}
	for _, step := range []struct {
		name      string
		change    func()
		wantSince time.Time // zero for no idle task
		wantWords string
	}{
		{"at first", func() {}, first.Add(-30 * time.Minute), "idle for at least 30 m"},
		{"later", func() { pass(100 * time.Minute / 4) }, first.Add(-30 * time.Minute), "idle for at least 55 m"},
		{"again", func() { pass(30 * time.Minute) }, first.Add(-30 * time.Minute), "idle for at least 1 h 25 m"},
		{"without data", func() { b.state.Reading = nil; now = now.Add(time.Minute) }, time.Time{}, ""},
	} {
		step.change()
		idle := h.IdleTasks(t.Context())
		if step.wantSince.IsZero() {
			if len(idle) > 0 {
				t.Errorf("%s: got %+v, want no idle tasks", step.name, idle)
			}
			continue
		}
		got, found := idle["uid-sleeps"]
		if !found || len(idle) != 1 || !got.Since.Equal(step.wantSince) || got.Accelerators != 2 || got.Peak != 0.02 || got.Words(now) != step.wantWords {
			t.Errorf("%s: got %+v, %q, want since %s, %q", step.name, idle, got.Words(now), step.wantSince, step.wantWords)
		}
	}

	b.state.Reading = &utilization.Reading{At: now.Add(time.Hour)} // nothing is idle
	now = now.Add(time.Hour)
	if idle := h.IdleTasks(t.Context()); len(idle) > 0 {
		t.Errorf("got %+v, want no idle tasks", idle)
	}
	if idle := (*Pages)(nil).IdleTasks(t.Context()); idle != nil {
		t.Errorf("without Prometheus: got %+v", idle)
	}
}

// A gap between readings that is longer than their peaks ends what is known.
func TestIdleAfterAGap(t *testing.T) {
	h, b := busySample()
	now := busyNow
	h.Now = func() time.Time { return now }
	h.IdleTasks(t.Context())
	now = now.Add(time.Hour)
	next := *b.state.Reading
	next.At = now
	b.state.Reading = &next
	if got := h.IdleTasks(t.Context())["uid-sleeps"]; !got.Since.Equal(now.Add(-30 * time.Minute)) {
		t.Errorf("got since %s, want %s", got.Since, now.Add(-30*time.Minute))
	}
}
