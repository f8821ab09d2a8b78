package recorder

import "time"

// leap is by how much the clock of the machine may differ from the time that
// really passed before it counts as set.
const leap = 2 * time.Second

// clock tells a time that never goes back, in whole milliseconds.
type clock struct {
	wall func() time.Time // with a monotonic reading
	from time.Time        // when it was set the last time, by wall
	base time.Time        // what it told then
	last time.Time
}

// newClock tells no time before one, such as what a console wrote that ran here
// before with a clock that was ahead.
func newClock(wall func() time.Time, notBefore time.Time) *clock {
	c := &clock{wall: wall, from: wall()}
	c.base = c.from.Round(0)
	if c.base.Before(notBefore) {
		c.base = notBefore
	}
	return c
}

// now is the time. Where the machine's clock was put forward it follows, and
// leapt is the time before that; else leapt is zero. Where it was put back it goes
// on by the time that passes, until the machine's has caught up.
func (c *clock) now() (now, leapt time.Time) {
	wall := c.wall()
	now = c.base.Add(wall.Sub(c.from)) // by the monotonic clock
	if ahead := wall.Round(0).Sub(now); ahead > leap {
		leapt = now.Truncate(time.Millisecond)
		c.from, c.base = wall, wall.Round(0)
		now = c.base
	}
	now = now.Truncate(time.Millisecond)
	if now.Before(c.last) {
		now = c.last
	}
	c.last = now
	return now, leapt
}
