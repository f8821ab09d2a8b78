package tasks

import "time"

// life is what the index saw that Kueue forgets. Most tasks have nothing in it:
// only what Kueue overwrote is kept, and of each task no more than a few steps.
type life struct {
	from  time.Time // since when nothing is missed: the end of the first list
	lines map[queueKey]*line
	pasts map[groupKey]*past
}

// note takes in that a task became another; either may be nil. first says that
// it was there before this process.
func (x *Index) note(before, t *Task, first bool) {
	if x.life.lines == nil {
		x.life = life{from: x.now(), lines: map[queueKey]*line{}, pasts: map[groupKey]*past{}}
	}
	switch {
	case before == nil && t == nil:
		return
	case first:
		x.life.from = x.now()
	default:
		x.seats(before, t)
	}
	switch {
	case t == nil:
		delete(x.life.pasts, groupKey{before.Namespace, before.UID})
	default:
		x.remember(before, t)
	}
}
