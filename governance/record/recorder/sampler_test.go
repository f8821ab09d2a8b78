package recorder

import (
	"testing"
	"time"
)

// The clock follows a system clock that is set forward. While it is set back, the
// clock advances by the time that passes.
func TestClock(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var passed, set time.Duration
	c := newClock(func() time.Time { return start.Add(passed + set) }, func() time.Duration { return passed }, time.Time{})
	check := func(after time.Duration, wantLeap bool) {
		t.Helper()
		now, beforeLeap := c.now()
		if want := start.Add(after); !now.Equal(want) || beforeLeap.IsZero() == wantLeap {
			t.Errorf("now is %s, want %s; before the leap %v", now, want, beforeLeap)
		}
	}
	check(0, false)
	passed = time.Minute
	check(time.Minute, false)
	set = time.Second // as NTP does
	check(time.Minute, false)
	set = time.Hour
	check(time.Minute+time.Hour, true)
	passed += time.Minute
	check(2*time.Minute+time.Hour, false)
	set = -time.Hour
	passed += time.Minute
	check(3*time.Minute+time.Hour, false) // goes on, although the system clock is two hours behind
	set = time.Hour
	check(3*time.Minute+time.Hour, false)

	behind := newClock(func() time.Time { return start }, func() time.Duration { return passed }, start.Add(time.Hour))
	if now, _ := behind.now(); !now.Equal(start.Add(time.Hour)) {
		t.Errorf("now is %s, before the last sample", now)
	}
}
