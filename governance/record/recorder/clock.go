package recorder

import (
	"time"

	"kuota.dev/kuota/governance"
)

// maxDrift is how far the system clock may run ahead of the monotonic clock before
// it counts as set forward.
const maxDrift = 2 * time.Second

// clock returns times that never go back, in whole milliseconds.
type clock struct {
	wall      func() time.Time     // the system clock
	monotonic func() time.Duration // since a fixed moment; it cannot be set
	base      time.Time            // time at monotonic == offset
	offset    time.Duration
	last      time.Time
}

// newClock returns a clock that starts at notBefore if the system clock is behind
// it, for example because an earlier console wrote while its clock was ahead.
func newClock(wall func() time.Time, monotonic func() time.Duration, notBefore time.Time) *clock {
	return &clock{wall: wall, monotonic: monotonic, base: governance.Later(wall(), notBefore), offset: monotonic()}
}

// now returns the time. If the system clock was set forward, now follows it and
// beforeLeap is the time before that; otherwise beforeLeap is zero. If the system
// clock was set back, now advances with the monotonic clock until the system clock
// has caught up.
func (c *clock) now() (now, beforeLeap time.Time) {
	monotonic := c.monotonic()
	now = c.base.Add(monotonic - c.offset)
	if wall := c.wall(); wall.Sub(now) > maxDrift {
		beforeLeap = now.Truncate(time.Millisecond)
		c.base, c.offset, now = wall, monotonic, wall
	}
	now = governance.Later(now.Truncate(time.Millisecond), c.last)
	c.last = now
	return now, beforeLeap
}
