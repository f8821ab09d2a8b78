package tasks

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// lineLength is how many changes a line keeps.
const lineLength = 64

// seat is where something stands in a queue: what inQueue compares.
type seat struct {
	priority int32
	queued   int64 // seconds since 1970, as Kueue keeps them
	uid      string
}

func seatOf(t *Task) seat { return seat{t.Priority, queuedAt(t).Unix(), string(t.main.UID)} }

func (s seat) compare(other seat) int {
	return cmp.Or(cmp.Compare(other.priority, s.priority), cmp.Compare(s.queued, other.queued), strings.Compare(s.uid, other.uid))
}

// line remembers when places in a queue changed. Somebody's place changes when
// something before it joins or leaves, so a change is forgotten once another
// came after it that stands before it or at the same seat: what is left goes
// from old to new and from front to back, and a change costs little, however
// long the queue is.
type line struct {
	changes []lineChange
}

type lineChange struct {
	at    time.Time
	seat  seat
	about bool // it happened then or earlier
}

// changed takes in that something joined or left.
func (l *line) changed(at time.Time, s seat) {
	n := len(l.changes)
	for n > 0 && l.changes[n-1].seat.compare(s) >= 0 {
		n--
	}
	l.changes = append(l.changes[:n], lineChange{at: at, seat: s})
	if len(l.changes) <= lineLength {
		return
	}
	// The two that are nearest in time become one: the time of the later at the
	// seat of the former, so that nobody is told that they stood longer than they
	// did.
	nearest := 0
	for i := range l.changes[1:] {
		if l.gap(i) < l.gap(nearest) {
			nearest = i
		}
	}
	l.changes[nearest].at, l.changes[nearest].about = l.changes[nearest+1].at, true
	l.changes = slices.Delete(l.changes, nearest+1, nearest+2)
}

func (l *line) gap(i int) time.Duration { return l.changes[i+1].at.Sub(l.changes[i].at) }

// last is when anything changed at all.
func (l *line) last() time.Time {
	if l == nil || len(l.changes) == 0 {
		return time.Time{}
	}
	return l.changes[len(l.changes)-1].at
}

// since is when something before a seat joined or left for the last time; about
// says that it may have been earlier. The zero time is for never.
func (l *line) since(s seat) (at time.Time, about bool) {
	if l == nil {
		return time.Time{}, false
	}
	for i := len(l.changes) - 1; i >= 0; i-- {
		if c := l.changes[i]; c.seat.compare(s) < 0 {
			return c.at, c.about
		}
	}
	return time.Time{}, false
}

// seats takes in where a task stood and where it stands; nil is nowhere.
func (x *Index) seats(before, t *Task) {
	was, is := before != nil && before.queued(), t != nil && t.queued()
	if was && is && before.Queue == t.Queue && seatOf(before) == seatOf(t) {
		return
	}
	for _, moved := range []struct {
		waits bool
		task  *Task
	}{{was, before}, {is, t}} {
		if !moved.waits {
			continue
		}
		key := queueKey{moved.task.Namespace, moved.task.Queue}
		l := x.life.lines[key]
		if l == nil {
			l = &line{}
			x.life.lines[key] = l
		}
		l.changed(x.now(), seatOf(moved.task))
	}
}

// placeSince is since when a task that waits has its place; atLeast says that it
// may have it for longer.
func (x *Index) placeSince(t *Task) (since time.Time, atLeast bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	since, atLeast = x.life.lines[queueKey{t.Namespace, t.Queue}].since(seatOf(t))
	if x.life.from.After(since) { // what was before, nobody saw
		since, atLeast = x.life.from, true
	}
	if t.WaitingSince.After(since) {
		return t.WaitingSince, false
	}
	return since, atLeast
}
