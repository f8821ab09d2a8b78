package recorder

import (
	"testing"
	"time"
)

// A clock that is put forward is followed, and one that is put back is not: time
// goes on by what passes.
func TestClock(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var passed, set time.Duration
	c := newClock(func() time.Time { return start.Add(passed + set) }, func() time.Duration { return passed }, time.Time{})
	tell := func(after time.Duration, wantLeap bool) {
		t.Helper()
		now, leapt := c.now()
		if want := start.Add(after); !now.Equal(want) || leapt.IsZero() == wantLeap {
			t.Errorf("it is %s, want %s; it leapt from %v", now, want, leapt)
		}
	}
	tell(0, false)
	passed = time.Minute
	tell(time.Minute, false)
	set = time.Second // as time servers do
	tell(time.Minute, false)
	set = time.Hour
	tell(time.Minute+time.Hour, true)
	passed += time.Minute
	tell(2*time.Minute+time.Hour, false)
	set = -time.Hour
	passed += time.Minute
	tell(3*time.Minute+time.Hour, false) // on, though the machine's is two hours behind
	set = time.Hour
	tell(3*time.Minute+time.Hour, false)

	behind := newClock(func() time.Time { return start }, func() time.Duration { return passed }, start.Add(time.Hour))
	if now, _ := behind.now(); !now.Equal(start.Add(time.Hour)) {
		t.Errorf("after what is written comes %s", now)
	}
}
