package recorder

import "time"

// leap is by how much the clock of the machine may be ahead of the time that
// really passed before it counts as set.
const leap = 2 * time.Second

// clock tells a time that never goes back, in whole milliseconds.
type clock struct {
	wall   func() time.Time     // the machine's
	passed func() time.Duration // since something, by a clock that nobody sets
	base   time.Time            // what it told when from had passed
	from   time.Duration
	last   time.Time
}

// newClock tells no time before one, such as what a console wrote that ran here
// before with a clock that was ahead.
func newClock(wall func() time.Time, passed func() time.Duration, notBefore time.Time) *clock {
	return &clock{wall: wall, passed: passed, base: later(wall(), notBefore), from: passed()}
}

// now is the time. Where the machine's clock was put forward it follows, and
// leapt is the time before that; else leapt is zero. Where it was put back it goes
// on by the time that passes, until the machine's has caught up.
func (c *clock) now() (now, leapt time.Time) {
	passed := c.passed()
	now = c.base.Add(passed - c.from)
	if wall := c.wall(); wall.Sub(now) > leap {
		leapt = now.Truncate(time.Millisecond)
		c.base, c.from, now = wall, passed, wall
	}
	now = later(now.Truncate(time.Millisecond), c.last)
	c.last = now
	return now, leapt
}
