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
// long the queue is. Who joins at the end changes nobody's place.
type line struct {
	changes []lineChange
	end     seat      // nobody stands behind it; the zero seat while nobody waited
	moved   time.Time // when anything changed at all
}

type lineChange struct {
	at    time.Time
	seat  seat
	about bool // it happened then or earlier
}

// reach takes in that somebody stands there.
func (l *line) reach(s seat) {
	if l.end == (seat{}) || s.compare(l.end) > 0 {
		l.end = s
	}
}

// changed takes in that something joined or left.
func (l *line) changed(at time.Time, s seat) {
	l.moved = at
	if l.end == (seat{}) || s.compare(l.end) >= 0 {
		l.end = s
		return
	}
	n := len(l.changes)
	for n > 0 && l.changes[n-1].seat.compare(s) >= 0 {
		n--
	}
	l.changes = append(l.changes[:n], lineChange{at: at, seat: s})
	if len(l.changes) > lineLength {
		l.shorten(at)
	}
}

// shorten makes one of two changes: the time of the later at the seat of the
// former, so that nobody is told that they stood longer than they did. It takes
// those two that are nearest, measured by how long ago they were.
func (l *line) shorten(now time.Time) {
	nearest, least := 0, 2.0
	for i := range l.changes[1:] {
		older, newer := now.Sub(l.changes[i].at), now.Sub(l.changes[i+1].at)
		if gap := float64(older-newer) / float64(older+1); gap < least {
			nearest, least = i, gap
		}
	}
	l.changes[nearest].at, l.changes[nearest].about = l.changes[nearest+1].at, true
	l.changes = slices.Delete(l.changes, nearest+1, nearest+2)
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
		if key := (queueKey{moved.task.Namespace, moved.task.Queue}); x.queues[key] == nil { // nobody waits there
			delete(x.life.lines, key)
			continue
		}
		x.life.line(moved.task).changed(x.now(), seatOf(moved.task))
	}
}

// line is that of a task's queue.
func (l *life) line(t *Task) *line {
	key := queueKey{t.Namespace, t.Queue}
	found := l.lines[key]
	if found == nil {
		found = &line{}
		l.lines[key] = found
	}
	return found
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
