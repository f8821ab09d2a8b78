package index

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"
)

// maxChanges is how many changes a positionLog keeps.
const maxChanges = 64

// sortKey is what InQueue compares of a task.
type sortKey struct {
	priority int32
	queuedAt int64 // seconds since 1970, as Kueue keeps them
	uid      string
}

func sortKeyOf(t *tasks.Task) sortKey {
	return sortKey{t.Priority, QueuedAt(t).Unix(), string(t.Main.UID)}
}

func (s sortKey) compare(other sortKey) int {
	return cmp.Or(cmp.Compare(other.priority, s.priority), cmp.Compare(s.queuedAt, other.queuedAt), strings.Compare(s.uid, other.uid))
}

// positionLog records when positions in a LocalQueue changed. A position changes
// when a task before it joins or leaves, so a change is dropped once a later one
// happens at or before its key: the kept changes go from old to new and from front
// to back, and a change costs little, however long the queue is. A task that joins
// at the end changes no position.
type positionLog struct {
	changes   []positionChange
	end       sortKey   // no task is behind it; zero while no task waited
	changedAt time.Time // when anything changed at all
}

type positionChange struct {
	at         time.Time
	key        sortKey
	atOrBefore bool // it happened then or earlier
}

// extend records that a task waits at s.
func (l *positionLog) extend(s sortKey) {
	if l.end == (sortKey{}) || s.compare(l.end) > 0 {
		l.end = s
	}
}

// record records that a task joined or left at s.
func (l *positionLog) record(at time.Time, s sortKey) {
	l.changedAt = at
	if l.end == (sortKey{}) || s.compare(l.end) >= 0 {
		l.end = s
		return
	}
	n := len(l.changes)
	for n > 0 && l.changes[n-1].key.compare(s) >= 0 {
		n--
	}
	l.changes = append(l.changes[:n], positionChange{at: at, key: s})
	if len(l.changes) > maxChanges {
		l.mergeNearest(at)
	}
}

// mergeNearest makes one change of the two that are nearest, relative to their age:
// the time of the later with the key of the earlier, so that no task's time at its
// position is overstated.
func (l *positionLog) mergeNearest(now time.Time) {
	nearest, least := 0, 2.0
	for i := range l.changes[1:] {
		older, newer := now.Sub(l.changes[i].at), now.Sub(l.changes[i+1].at)
		if gap := float64(older-newer) / float64(older+1); gap < least {
			nearest, least = i, gap
		}
	}
	l.changes[nearest].at, l.changes[nearest].atOrBefore = l.changes[nearest+1].at, true
	l.changes = slices.Delete(l.changes, nearest+1, nearest+2)
}

// since returns when a task before s last joined or left; atOrBefore reports that it
// may have been earlier. Zero for never.
func (l *positionLog) since(s sortKey) (at time.Time, about bool) {
	if l == nil {
		return time.Time{}, false
	}
	for i := len(l.changes) - 1; i >= 0; i-- {
		if c := l.changes[i]; c.key.compare(s) < 0 {
			return c.at, c.atOrBefore
		}
	}
	return time.Time{}, false
}

// recordPosition records that a task moved in its queue; nil is outside of every
// queue.
func (x *Index) recordPosition(before, t *tasks.Task) {
	was, is := before != nil && before.Queued(), t != nil && t.Queued()
	if was && is && before.Queue == t.Queue && sortKeyOf(before) == sortKeyOf(t) {
		return
	}
	for _, moved := range []struct {
		waits bool
		task  *tasks.Task
	}{{was, before}, {is, t}} {
		if !moved.waits {
			continue
		}
		if key := (QueueKey{moved.task.Namespace, moved.task.Queue}); x.queues[key] == nil { // the queue is empty
			delete(x.life.positionLogs, key)
			continue
		}
		x.life.positionLog(moved.task).record(x.Now(), sortKeyOf(moved.task))
	}
}

// positionLog returns the log of a task's queue.
func (l *life) positionLog(t *tasks.Task) *positionLog {
	key := QueueKey{t.Namespace, t.Queue}
	found := l.positionLogs[key]
	if found == nil {
		found = &positionLog{}
		l.positionLogs[key] = found
	}
	return found
}

// PositionSince returns since when a task that waits has its position; atLeast says
// that it may have had it for longer.
func (x *Index) PositionSince(t *tasks.Task) (since time.Time, atLeast bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	since, atLeast = x.life.positionLogs[QueueKey{t.Namespace, t.Queue}].since(sortKeyOf(t))
	if x.life.from.After(since) { // earlier changes were not observed
		since, atLeast = x.life.from, true
	}
	if t.WaitingSince.After(since) {
		return t.WaitingSince, false
	}
	return since, atLeast
}
