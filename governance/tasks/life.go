package tasks

import (
	"context"
	"time"
)

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
	x.recording.note(x, before, t)
	if x.life.lines == nil {
		x.life = life{from: x.now(), lines: map[queueKey]*line{}, pasts: map[groupKey]*past{}}
	}
	switch {
	case before == nil && t == nil:
		return
	case first && t != nil: // nobody knows what it was before
		x.life.from = x.now()
		if t.queued() {
			x.life.line(t).reach(seatOf(t))
		}
		x.meet(t)
	case t == nil:
		x.seats(before, t)
		delete(x.life.pasts, groupKey{before.Namespace, before.UID})
	default:
		x.seats(before, t)
		x.remember(before, t)
		x.measureLoops(t)
	}
}

// Life is what became of a task until now.
type Life struct {
	Timeline     []Event
	Omitted      int32         // how often it lost its quota beyond what Timeline has
	Sizes        []Resize      // of a task that had more than one
	QuotaSources *QuotaSources // whose quota it holds; nil for none
}

// life is a task's life as the viewer may see it.
func (v viewer) life(ctx context.Context, t *Task) (l Life, err error) {
	l.Timeline, l.Sizes = v.index.Timeline(t), v.index.Sizes(t)
	l.Omitted = t.Evictions
	for i := range l.Timeline {
		e := &l.Timeline[i]
		if e.lost() {
			l.Omitted = max(0, l.Omitted-1-e.Omitted)
		}
		e.Message = v.names.redact(e.Message)
		if e.Preemptor != nil && v.sees != nil && !v.sees[e.Preemptor.Namespace] {
			e.Preemptor, e.PreemptorDeleted = nil, false
		}
		if e.Preemptor != nil {
			e.PreemptorTeam = v.teams[e.Preemptor.Namespace]
		}
	}
	l.QuotaSources, err = v.backing(ctx, t)
	return l, err
}
